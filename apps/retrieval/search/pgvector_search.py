"""Search by pgvector: by one of its approximate indexes, or all vectors of the table."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray
from pgvector import Vector
from psycopg import sql

from apps.retrieval.filters import Filter, condition
from apps.retrieval.models import Index
from apps.retrieval.search.ann_indexes import STORAGES, ann_index_name, mark
from apps.retrieval.stores.base import Nominate, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

ITERATIVE = {"off": "off", "strict": "strict_order", "relaxed": "relaxed_order"}
FILTERED = {"hnsw": "strict", "ivfflat": "relaxed"}  # the strictest that each has
LITERAL = re.compile(r"'(\[[^\]']*\]|[01]{9,})'")


class Among(NamedTuple):
    """What a search is restricted to: `mask` (n,), which in SQL is what `filter` asks of metadata; without a filter,
    the positions of the mask."""

    filter: Filter | None = None
    mask: NDArray[np.bool_] | None = None

    @property
    def condition(self) -> tuple[sql.Composable, list[Any]]:
        if self.filter is None and self.mask is not None:
            return sql.SQL("id = ANY(%s)"), [np.flatnonzero(self.mask).tolist()]
        return condition(self.filter or {})


@contextmanager
def nominating(index: Index, setting: Ann, among: Among, depth: int) -> Iterator[tuple[Nominate, bool, float]]:
    """Open a transaction for searches of one setting among the same; give the search, whether it uses its index, and
    the seconds that checking that took, and setting PostgreSQL's parameters.

    They are no part of a search's cost: a service does it once for a connection.
    """
    started = time.perf_counter()
    with searching(setting, filtered=among.mask is not None) as cursor:
        apart = time.perf_counter() - started
        statement, parameters = _statement(index, setting, among)

        def nominate(query: Vectors, depth: int) -> Positions:
            cursor.execute(statement, [*parameters, Vector(query).to_text(), depth])
            return np.fromiter((row[0] for row in cursor.fetchall()), np.int64)

        started = time.perf_counter()
        uses_index = _plan(cursor, index, setting, depth, among)[0]
        yield nominate, uses_index, apart + time.perf_counter() - started


def explain(index: Index, setting: Ann, depth: int) -> dict[str, Any]:
    """Return how PostgreSQL searches under `setting`: `index_used`, the `settings` read back, the `plan` in its words.

    Vectors are left out of the plan.
    """
    with searching(setting, filtered=False) as cursor:
        used, plan = _plan(cursor, index, setting, depth, Among())
        read_back = {}
        for name in _parameters(setting, filtered=False):
            cursor.execute("SELECT current_setting(%s)", [name])
            read_back[name] = cursor.fetchone()[0]
    return {"index_used": used, "settings": read_back, "plan": plan}


@contextmanager
def searching(setting: Ann, *, filtered: bool) -> Iterator[Any]:
    """Open a transaction in which PostgreSQL searches as `setting` says, and give its cursor.

    It must be the outermost, or its parameters would outlast it.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        for name, value in _parameters(setting, filtered=filtered).items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        yield cursor


def _parameters(setting: Ann, *, filtered: bool) -> dict[str, str]:
    """PostgreSQL's parameters for a search.

    Sequential scans are off, and sorting: who asks for an index means it, also where the table is so small that reading
    all of it would be quicker, or the filter so narrow that sorting what the primary key finds would be. A filtered
    search always scans on until it has enough, since filters apply before ranking.
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


def _plan(cursor: Any, index: Index, setting: Ann, depth: int, among: Among) -> tuple[bool, str]:
    """Whether the search goes as its setting says, and the plan. That does not depend on the query, so any will do.

    One that compares all may find its rows by any index but an approximate one: PostgreSQL finds few positions by the
    primary key.
    """
    assert index.dimension is not None
    statement, parameters = _statement(index, setting, among)
    query = Vector(np.eye(1, index.dimension, dtype=np.float32)[0]).to_text()
    cursor.execute(f"EXPLAIN {statement}", [*parameters, query, depth])
    plan = "\n".join(row[0] for row in cursor.fetchall())
    if setting.compares_all:
        is_meant = not any(f"Scan using {index.vector_table}_{method}_" in plan for method in FILTERED)
    else:
        is_meant = f"Index Scan using {ann_index_name(index, setting)} on" in plan
    return is_meant, LITERAL.sub("'…'", plan)


def _statement(index: Index, setting: Ann, among: Among) -> tuple[str, list[Any]]:
    """The statement of a search, to which its query, as text, and its depth are the last two parameters."""
    assert index.dimension is not None
    storage = STORAGES["vector" if setting.compares_all else setting["storage"]]
    condition, parameters = among.condition
    dimension = sql.Literal(index.dimension)
    statement = sql.SQL(
        "SELECT id FROM {table} WHERE {mark} AND {where} ORDER BY {column} {operator} {query} LIMIT %s"
    ).format(
        table=sql.Identifier(index.vector_table),
        mark=sql.SQL("true") if setting.compares_all else mark(ann_index_name(index, setting)),
        where=condition,
        column=sql.SQL(storage.column).format(dimension=dimension),
        operator=sql.SQL(storage.operator),
        query=sql.SQL(storage.query).format(vector=sql.Placeholder(), dimension=dimension),
    )
    return statement.as_string(connection.connection), parameters
