"""pgvector: approximate indexes on an index's table of vectors, and search with them."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from pgvector import Vector
from psycopg import sql

from apps.retrieval.filters import add_share
from apps.retrieval.models import Index
from apps.retrieval.search.admission import Among, analyze_places
from apps.retrieval.search.holding import take_lock
from apps.retrieval.stores.base import Nominate, Vectors
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

BUILD_WORKERS = 4  # PostgreSQL uses fewer for small tables and limits them to max_parallel_workers
MIN_BUILD_BYTES = 64 * 2**20  # PostgreSQL's default of maintenance_work_mem


class AnnIndexError(BenchbenchError):
    """An approximate index cannot be built."""

    code = "ann_index"


class Storage(NamedTuple):
    """The storage of vectors in an approximate index. Inner products of unit vectors order like cosines."""

    form: str  # of a `source`, which is the column or a query
    operator: str
    operators: str
    max_dimension: int
    bits: int


STORAGES = {
    "vector": Storage("{source}", "<#>", "vector_ip_ops", 2000, 32),
    "halfvec": Storage("{source}::halfvec({dimension})", "<#>", "halfvec_ip_ops", 4000, 16),
    "binary": Storage("binary_quantize({source})::bit({dimension})", "<~>", "bit_hamming_ops", 64_000, 1),
}
SOURCE = "l2_normalize(subvector({vector}, 1, {dimension}))::vector({dimension})"  # of fewer dimensions


@dataclass(frozen=True, slots=True)
class AnnIndex:
    """An existing approximate index: its name in PostgreSQL, its size, and its build time."""

    name: str
    bytes: int
    build_seconds: float


def check_ann(index: Index, setting: Ann) -> None:
    """Check that pgvector can index vectors of this dimension with `setting`. Raises AnnIndexError."""
    if setting.compares_all or index.dimension is None:
        return
    if setting["dimensions"] > index.dimension:
        raise AnnIndexError(
            f'{setting} cannot search "{index}": give at most {index.dimension:,} dimensions.',
            field="ann",
        )
    limits = {name: storage.max_dimension for name, storage in STORAGES.items()}
    dimension = setting["dimensions"] or index.dimension
    if dimension > limits[setting["storage"]]:
        raise AnnIndexError(
            f'{setting} cannot index the {dimension:,} dimensions of "{index}": pgvector indexes at most '
            + ", ".join(f"{limit:,} with storage={name}" for name, limit in limits.items())
            + ".",
            field="ann",
        )


def make_ann_index(index: Index, setting: Ann) -> AnnIndex:
    """Return the approximate index that `setting` searches, built in one transaction if missing.

    One worker builds and others wait. HNSW and IVFFlat are random, so an index that was built again may find other
    chunks; an existing one is reused. Building blocks writers, which a ready index does not have. Raises AnnIndexError.
    """
    check_ann(index, setting)
    name = name_ann_index(index, setting)
    with transaction.atomic(), connection.cursor() as cursor:
        take_lock(name)
        if existing := find_ann_index(name):
            return existing
        for parameter, value in _build_parameters(index, setting).items():
            cursor.execute("SELECT set_config(%s, %s, true)", [parameter, value])
        started = time.perf_counter()
        cursor.execute(_build_definition(index, setting, name))
        # Stored as the index's comment, so that it is dropped with the index.
        facts = json.dumps({"build_seconds": round(time.perf_counter() - started, 3)})
        cursor.execute(
            sql.SQL("COMMENT ON INDEX {name} IS {facts}").format(name=sql.Identifier(name), facts=sql.Literal(facts))
        )
        ann_index = find_ann_index(name)
        assert ann_index is not None
        return ann_index


def name_ann_index(index: Index, setting: Ann) -> str:
    """Return the name, of at most 63 characters, of a setting's index. Settings with equal build options share it."""
    build = setting.build
    if dimensions := build.pop("dimensions", 0):  # in place of the storage's name, because names are short
        build["storage"] = f"{setting['storage'][0]}{dimensions}"
    return "_".join([index.vector_table, setting.method, *map(str, build.values())])


def find_ann_index(name: str) -> AnnIndex | None:
    """Return the index of that name if it exists and is valid, or None."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_relation_size(indexrelid), obj_description(indexrelid, 'pg_class') FROM pg_index "
            "WHERE indexrelid = to_regclass(%s) AND indisvalid",
            [sql.Identifier(name).as_string(None)],
        )
        row = cursor.fetchone()
    return AnnIndex(name, row[0], json.loads(row[1] or "{}").get("build_seconds", 0.0)) if row else None


def build_mark(name: str) -> sql.Composable:
    """Return a condition, true for every row, that makes a statement use the partial index `name`."""
    return sql.SQL("id <> {number}").format(number=sql.Literal(-1 - (crc32(name.encode()) >> 1)))


def _build_definition(index: Index, setting: Ann, name: str) -> sql.Composable:
    assert index.dimension is not None
    storage = STORAGES[setting["storage"]]
    options = [
        sql.SQL("{} = {}").format(sql.Identifier(option), sql.Literal(value))
        for option, value in setting.build.items()
        if option not in ("storage", "dimensions")
    ]
    return sql.SQL(
        "CREATE INDEX {name} ON {table} USING {method} (({column}) {operators}) WITH ({options}) WHERE {mark}"
    ).format(
        name=sql.Identifier(name),
        table=sql.Identifier(index.vector_table),
        method=sql.SQL(setting.method),
        column=_render_vector(index, setting, sql.SQL("embedding")),
        operators=sql.SQL(storage.operators),
        options=sql.SQL(", ").join(options),
        mark=build_mark(name),
    )


def _render_vector(index: Index, setting: Ann, vector: sql.Composable) -> sql.Composable:
    """Return the expression of a vector, the column or a query, in the form that an approximate index stores."""
    dimensions = 0 if setting.compares_all else setting["dimensions"]
    dimension = sql.Literal(dimensions or index.dimension)
    source = sql.SQL(SOURCE).format(vector=vector, dimension=dimension) if dimensions else vector
    storage = STORAGES["vector" if setting.compares_all else setting["storage"]]
    return sql.SQL(storage.form).format(source=source, dimension=dimension)


def _build_parameters(index: Index, setting: Ann) -> dict[str, Any]:
    """Return PostgreSQL's parameters for a build, with memory for the whole index, within bounds.

    pgvector builds several times slower once the index exceeds its memory. A neighbour in a graph takes 16 bytes; an
    element has 2 m of them on the lowest layer, about m above, and some 200 bytes of its own.
    """
    assert index.chunk_set is not None
    assert index.dimension is not None
    graph = 200 + 3 * 16 * setting["m"] if setting.method == "hnsw" else 50
    dimension = setting["dimensions"] or index.dimension
    needed = index.chunk_set.vector_count * (dimension * STORAGES[setting["storage"]].bits // 8 + graph)
    memory = max(MIN_BUILD_BYTES, min(needed, settings.BENCHBENCH_ANN_BUILD_BYTES))
    return {"maintenance_work_mem": f"{memory // 1024}kB", "max_parallel_maintenance_workers": str(BUILD_WORKERS)}


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
        facts: dict[str, Any] = {"index_used": used, "plan": plan}
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


def _plan(cursor: Any, index: Index, setting: Ann, depth: int, among: Among) -> tuple[bool, str]:
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
        column=_render_vector(index, setting, sql.SQL("embedding")),
        operator=sql.SQL(storage.operator),
        query=_render_vector(index, setting, sql.SQL("%s::vector")),
    )
    return statement.as_string(connection.connection), parameters
