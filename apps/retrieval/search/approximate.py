"""Approximate search: an index of pgvector nominates chunks, and their full vectors decide."""

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray
from pgvector import Vector
from psycopg import sql

from apps.retrieval import exact
from apps.retrieval.filters import Filter, condition
from apps.retrieval.models import Index
from apps.retrieval.search.ann_indexes import STORAGES, ann_index_name, column, mark
from apps.retrieval.search.vectors import incomplete_table
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import pair_scores, top
from benchbench.ir.records import ScoredList

Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]

ITERATIVE = {"off": "off", "strict": "strict_order", "relaxed": "relaxed_order"}
FILTERED = {"hnsw": "strict", "ivfflat": "relaxed"}  # the strictest that each has
LITERAL = re.compile(r"'(\[[^\]']*\]|[01]{9,})'")


@dataclass(frozen=True, slots=True)
class Approximation:
    """The lists of queries, what each cost in milliseconds, and what is to be told of them.

    `notes` number queries: "without_index" whose statement could not use the index that it meant, "searched_exactly"
    whose filter left the index with too few chunks, so that all were compared instead; "short" for which it found fewer
    than were asked for, though there are more.
    """

    lists: list[ScoredList]
    costs: list[float]
    notes: dict[str, list[int]]


class ApproximateView:
    """An open index as a strategy sees it, for one setting and one filter; `seconds` is what each search has cost.

    Checking that the index is used, and setting PostgreSQL's parameters, is not in it: a service does that once for a
    connection.
    """

    def __init__(self, index: Index, vectors: Vectors, setting: Ann, filter: Filter) -> None:
        self._index = index
        self._vectors = vectors
        self._setting = setting
        self._filter = filter
        self.seconds: list[float] = []
        self.notes: defaultdict[str, list[int]] = defaultdict(list)  # by their places among all that were asked

    def nearest(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """The best `depth` of what the index nominates for each query; `mask` (n,) must be what the filter admits."""
        with searching(self._setting, filtered=mask is not None) as cursor:
            if len(queries) and not _plan(cursor, self._index, self._setting, depth, self._filter)[0]:
                self.notes["without_index"] += range(len(self.seconds), len(self.seconds) + len(queries))
            return [self._best(cursor, query, depth, mask) for query in queries]

    def _best(self, cursor: Any, query: Vectors, depth: int, mask: Mask | None) -> ScoredList:
        started = time.perf_counter()
        cursor.execute(*_statement(self._index, self._setting, query, depth, self._filter))
        ids = np.fromiter((row[0] for row in cursor.fetchall()), np.int64)
        if not (ids < len(self._vectors)).all():
            raise incomplete_table(self._index)
        if mask is not None:
            ids = ids[mask[ids]]  # a document's metadata may have changed since it was indexed
        if mask is not None and len(ids) < min(depth, int(mask.sum())):
            self.notes["searched_exactly"].append(len(self.seconds))
            best = exact.nearest(self._vectors, query[None], depth, mask=mask)[0]
        else:
            if mask is None and len(ids) < min(depth, len(self._vectors)):
                self.notes["short"].append(len(self.seconds))
            best = top(pair_scores(self._vectors[ids], query), depth, ids=ids)
        self.seconds.append(time.perf_counter() - started)
        return best


def explain(index: Index, setting: Ann, depth: int) -> dict[str, Any]:
    """Return how PostgreSQL searches under `setting`: `index_used`, the `settings` read back, the `plan` in its words.

    Vectors are left out of the plan.
    """
    with searching(setting, filtered=False) as cursor:
        used, plan = _plan(cursor, index, setting, depth, {})
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

    Sequential scans are off: who asks for an index means it, also where the table is so small that reading all of it
    would be quicker. A filtered search always scans on until it has enough, since filters apply before ranking.
    """
    iterative = FILTERED[setting.method] if filtered and setting["iterative"] == "off" else setting["iterative"]
    breadth = "ef_search" if setting.method == "hnsw" else "probes"
    return {
        "enable_seqscan": "off",
        f"{setting.method}.{breadth}": str(setting[breadth]),
        f"{setting.method}.iterative_scan": ITERATIVE[iterative],
    }


def _plan(cursor: Any, index: Index, setting: Ann, depth: int, filter: Filter) -> tuple[bool, str]:
    """Whether the search uses its index, and the plan. The plan does not depend on the query, so any will do."""
    assert index.dimension is not None
    statement, parameters = _statement(index, setting, np.eye(1, index.dimension, dtype=np.float32)[0], depth, filter)
    cursor.execute(sql.SQL("EXPLAIN ") + statement, parameters)
    plan = "\n".join(row[0] for row in cursor.fetchall())
    return f"Index Scan using {ann_index_name(index, setting)} on" in plan, LITERAL.sub("'…'", plan)


def _statement(
    index: Index, setting: Ann, query: Vectors, depth: int, filter: Filter
) -> tuple[sql.Composable, list[Any]]:
    assert index.dimension is not None
    storage = STORAGES[setting["storage"]]
    where, parameters = condition(filter)
    vector, dimension = sql.Literal(Vector(query).to_text()), sql.Literal(index.dimension)
    statement = sql.SQL(
        "SELECT id FROM {table} WHERE {mark} AND {where} ORDER BY {column} {operator} {query} LIMIT {depth}"
    ).format(
        table=sql.Identifier(index.vector_table),
        mark=mark(ann_index_name(index, setting)),
        where=where,
        column=column(setting, index.dimension),
        operator=sql.SQL(storage.operator),
        query=sql.SQL(storage.query).format(vector=vector, dimension=dimension),
        depth=sql.Literal(depth),
    )
    return statement, parameters
