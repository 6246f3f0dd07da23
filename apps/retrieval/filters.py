"""Filters of queries by the metadata of documents, evaluated in SQL.

A filter maps keys of a document's metadata to values. A document passes if it has each key with the required value. A
list in a filter requires any of its values. A list in a document has all its values: a module in two versions passes
for either. Values are equal as in JSON: 1 equals 1.0, and true is not 1.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, JSONField, Model, QuerySet, Value
from psycopg import sql
from psycopg.types.json import Jsonb

Filter = Mapping[str, Any]
AnyModel = TypeVar("AnyModel", bound=Model)

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
    """Return the SQL condition of a filter on a row with a column `metadata`, and its parameters."""
    if not filter:
        return sql.SQL("true"), []
    demand = sql.SQL(HAS_ONE.replace("%(expressions)s", "metadata, %s::text, %s::jsonb[]"))
    parameters = [parameter for key, value in filter.items() for parameter in (key, list(map(Jsonb, _expand(value))))]
    return sql.SQL(" AND ").join([demand] * len(filter)), parameters


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


def _expand(value: Any) -> list[Any]:
    return [value, *value] if isinstance(value, list) else [value]


def _list_choices(value: Any) -> list[Any]:
    return value if isinstance(value, list) and value else [value]


def _render(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
