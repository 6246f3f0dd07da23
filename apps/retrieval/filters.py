"""Filters of queries by the metadata of documents, evaluated in SQL.

A filter maps keys of a document's metadata to values. A document passes if it has each key with the required value. A
list in a filter requires any of its values. A list in a document has all its values: a module in two versions passes
for either. Values are equal as in JSON: 1 equals 1.0, and true is not 1.

SHARE_KEY in a filter admits a share of all documents, by their places: pseudo-random numbers that follow from their
external ids. So each machine and store admits the same documents, and a smaller share some of those of a larger one.
"""

import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, JSONField, Model, QuerySet, Value
from psycopg import sql
from psycopg.types.json import Jsonb

Filter = Mapping[str, Any]
AnyModel = TypeVar("AnyModel", bound=Model)

SHARE_KEY = "\0share"  # PostgreSQL stores no text with this character, so that no filter of a query has this key
PLACES = 2**31  # as many as an integer column holds

# A value and, if it is a list, its elements: each of them may match.
VALUES = "jsonb_array_elements(jsonb_build_array({0}) || CASE jsonb_typeof({0}) WHEN 'array' THEN {0} ELSE '[]' END)"
HAS = f"""CASE jsonb_typeof(metadata -> key)
    WHEN 'array' THEN EXISTS (SELECT FROM {VALUES.format("(metadata -> key)")} AS has WHERE has.value = ANY(wanted))
    ELSE metadata -> key = ANY(wanted) END"""  # nosec # constants
HAS_ONE = f"EXISTS (SELECT FROM (VALUES (%(expressions)s)) AS stated (metadata, key, wanted) WHERE {HAS})"  # nosec # constants
LACKS_ANY = f"""EXISTS (
    SELECT FROM (VALUES (%(expressions)s)) AS stated (metadata, filters), jsonb_each(filters) AS asked (key, value),
        LATERAL (SELECT ARRAY(SELECT {VALUES.format("asked.value")})) AS any_of (wanted)
    WHERE ({HAS}) IS NOT TRUE
)"""  # nosec # constants


def build_condition(filter: Filter) -> tuple[sql.Composable, list[Any]]:
    """Return the SQL condition of a filter on a row with columns `metadata` and `place`, and its parameters."""
    by_metadata, share = split_share(filter)
    demand = sql.SQL(HAS_ONE.replace("%(expressions)s", "metadata, %s::text, %s::jsonb[]"))
    parameters = [
        parameter for key, value in by_metadata.items() for parameter in (key, list(map(Jsonb, _expand(value))))
    ]
    among = [] if share is None else [sql.SQL("place < {}").format(sql.Literal(bound_places(share)))]
    return sql.SQL(" AND ").join([*among, *[demand] * len(by_metadata)] or [sql.SQL("true")]), parameters


def add_share(filter: Filter, share: float | None) -> Filter:
    """Return a filter that admits those documents of a share that `filter` admits."""
    return filter if share is None else {**filter, SHARE_KEY: share}


def split_share(filter: Filter) -> tuple[Filter, float | None]:
    """Return a filter by metadata alone, and the share of the documents, if it has one."""
    return {key: value for key, value in filter.items() if key != SHARE_KEY}, filter.get(SHARE_KEY)


def find_place(external_id: str) -> int:
    """Return the place of a document among PLACES."""
    return int.from_bytes(blake2b(external_id.encode(), digest_size=4, person=b"filter share").digest()) % PLACES


def bound_places(share: float) -> int:
    """Return the place below which a share admits documents."""
    return math.ceil(share * PLACES)


def filter_rows(rows: QuerySet[AnyModel], filter: Filter) -> QuerySet[AnyModel]:
    """Return the rows with a field `metadata`, such as documents, that pass a filter."""
    for key, value in filter.items():
        values = Value(_expand(value), output_field=ArrayField(JSONField()))
        rows = rows.filter(Func(F("metadata"), Value(key), values, template=HAS_ONE, output_field=BooleanField()))
    return rows


def excludes(filters: str, metadata: str) -> Func:
    """Return an expression: whether the filter at one lookup path excludes the metadata at another."""
    return Func(F(metadata), F(filters), template=LACKS_ANY, output_field=BooleanField())


def describe_filter(filter: Filter) -> str:
    """Return a filter in words: "edition community, version 16.0 or 17.0"."""
    return ", ".join(
        f"{key} {' or '.join(map(_render, _list_choices(value)))}" for key, value in sorted(filter.items())
    )


def _expand(value: object) -> list[Any]:
    return [value, *value] if isinstance(value, list) else [value]


def _list_choices(value: object) -> list[Any]:
    return value if isinstance(value, list) and value else [value]


def _render(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
