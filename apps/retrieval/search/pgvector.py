"""Search by pgvector, with approximate indexes or by comparing all vectors."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from pgvector import Vector
from psycopg import sql

from apps.retrieval.filters import add_share
from apps.retrieval.models import Index
from apps.retrieval.search.admission import Among, analyze_places
from apps.retrieval.search.ann_indexes import STORAGES, AnnIndexError, build_mark, name_ann_index, render_vector
from apps.retrieval.stores.base import Nominate, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

ITERATIVE = {"off": "off", "strict": "strict_order", "relaxed": "relaxed_order"}
FILTERED = {"hnsw": "strict", "ivfflat": "relaxed"}  # the strictest mode of each
_checked = ContextVar[dict[tuple[str, int], bool]]("checked")  # whether a statement of some depth uses its index
LITERAL = re.compile(r"'(\[[^\]']*\]|[01]{9,})'")


@contextmanager
def nominating(index: Index, setting: Ann, among: Among, depth: int) -> Iterator[tuple[Nominate, bool, float]]:
    """Open a transaction for searches with one setting and restriction. Yield (search, uses_index, seconds).

    `seconds` is the time of setting PostgreSQL's parameters and checking the plan. It does not count as a search's
    cost, since a service does this once per connection.
    """
    started = time.perf_counter()
    with searching(setting, filtered=among.needs_enough) as cursor:
        setup_seconds = time.perf_counter() - started
        statement, parameters = _build_statement(index, setting, among)

        def nominate(query: Vectors, depth: int) -> Positions:
            cursor.execute(statement, [*parameters, Vector(query).to_text(), depth])
            return np.fromiter((row[0] for row in cursor.fetchall()), np.int64)

        started = time.perf_counter()
        checked = _checked.get({})
        if (statement, depth) not in checked:
            checked[statement, depth] = _plan(cursor, index, setting, depth, among)[0]
        yield nominate, checked[statement, depth], setup_seconds + time.perf_counter() - started


def check_plans_once() -> None:
    """Check the plan of equal statements once in this thread, as a service does once per connection."""
    _checked.set({})


def explain(index: Index, setting: Ann, depth: int, share: float | None = None) -> dict[str, Any]:
    """Return how PostgreSQL searches with `setting`: `index_used`, the `settings` read back, and the `plan`.

    Vectors are removed from the plan. With a `share`, `chosen` has what PostgreSQL would choose. Raises AnnIndexError.
    """
    if share is not None and not analyze_places(index.vector_table):
        raise AnnIndexError(f'"{index}" was built before filter shares existed: make a new version of the index.')
    among = Among(add_share({}, share))
    with searching(setting, filtered=False) as cursor:
        used, plan = _plan(cursor, index, setting, depth, among)
        facts: dict[str, object] = {"index_used": used, "plan": plan}
        names = list(_list_parameters(setting, filtered=False))
        cursor.execute("SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name", [names])
        facts["settings"] = dict(cursor.fetchall())
        if share is not None:
            cursor.execute("SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on")
            used, plan = _plan(cursor, index, setting, depth, among)
            facts["chosen"] = {"index_used": used, "plan": plan}
    return facts


@contextmanager
def searching(setting: Ann, *, filtered: bool) -> Iterator[Any]:
    """Open a transaction with PostgreSQL's parameters for `setting`. Yield its cursor.

    It must be the outermost, or its parameters would outlast it.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        if parameters := _list_parameters(setting, filtered=filtered):
            cursor.execute("SELECT set_config(key, value, true) FROM json_each_text(%s)", [json.dumps(parameters)])
        yield cursor


def _list_parameters(setting: Ann, *, filtered: bool) -> dict[str, str]:
    """Return PostgreSQL's parameters for a search.

    Sequential scans and sorting are off, so that the index is used. For a small table a scan would be faster, for a
    narrow filter a sort. `filtered` searches use iterative scans until they have enough: filters apply before ranking.
    """
    if setting.compares_all:
        return {}
    iterative = FILTERED[setting.method] if filtered and setting["iterative"] == "off" else setting["iterative"]
    breadth = "ef_search" if setting.method == "hnsw" else "probes"
    return {
        "enable_seqscan": "off",
        "enable_sort": "off",
        f"{setting.method}.{breadth}": str(setting[breadth]),
        f"{setting.method}.iterative_scan": ITERATIVE[iterative],
    }


def _plan(cursor: CursorWrapper, index: Index, setting: Ann, depth: int, among: Among) -> tuple[bool, str]:
    """Return whether the search follows its setting, and the plan, which does not depend on the query.

    A search that compares all vectors may use any index except an approximate one, such as the primary key for a few
    positions.
    """
    assert index.dimension is not None
    statement, parameters = _build_statement(index, setting, among)
    query = Vector(np.eye(1, index.dimension, dtype=np.float32)[0]).to_text()
    cursor.execute(f"EXPLAIN {statement}", [*parameters, query, depth])
    plan = "\n".join(row[0] for row in cursor.fetchall())
    if setting.compares_all:
        is_meant = not any(f"Scan using {index.vector_table}_{method}_" in plan for method in FILTERED)
    else:
        is_meant = f"Index Scan using {name_ann_index(index, setting)} on" in plan
    return is_meant, LITERAL.sub("'…'", plan)


def _build_statement(index: Index, setting: Ann, among: Among) -> tuple[str, list[Any]]:
    """Return the statement of a search with its parameters, except the last two: the query as text, and the depth."""
    assert index.dimension is not None
    storage = STORAGES["vector" if setting.compares_all else setting["storage"]]
    condition, parameters = among.condition
    statement = sql.SQL(
        "SELECT id FROM {table} WHERE {mark} AND {where} ORDER BY ({column}) {operator} ({query}) LIMIT %s"
    ).format(
        table=sql.Identifier(index.vector_table),
        mark=sql.SQL("true") if setting.compares_all else build_mark(name_ann_index(index, setting)),
        where=condition,
        column=render_vector(index, setting, sql.SQL("embedding")),
        operator=sql.SQL(storage.operator),
        query=render_vector(index, setting, sql.SQL("%s::vector")),
    )
    return statement.as_string(connection.connection), parameters
