"""Approximate indexes of pgvector on an index's table of vectors: named, built and found."""

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple
from zlib import crc32

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from apps.retrieval.models import Index
from apps.retrieval.search.holding import take_lock
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann

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
    """An existing approximate index: its name in PostgreSQL, its size, its build time, and which build it is.

    `build` is another one after each build, also by a restore or REINDEX, which may find other chunks.
    """

    name: str
    bytes: int
    build_seconds: float
    build: str


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
            "SELECT pg_relation_size(indexrelid), obj_description(indexrelid, 'pg_class'), oid,"
            " pg_relation_filenode(indexrelid) FROM pg_index, pg_database "
            "WHERE indexrelid = to_regclass(%s) AND indisvalid AND datname = current_database()",
            [sql.Identifier(name).as_string(None)],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    size, comment, *numbers = row
    build = "-".join(map(str, [_load_cluster(), *numbers]))
    return AnnIndex(name, size, json.loads(comment or "{}").get("build_seconds", 0.0), build)


@cache
def _load_cluster() -> int:
    """Return the number of this PostgreSQL cluster; 0 if this user may not read it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_function_privilege('pg_control_system()', 'execute')")
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute("SELECT system_identifier FROM pg_control_system()")
        return int(cursor.fetchone()[0])


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
        column=render_vector(index, setting, sql.SQL("embedding")),
        operators=sql.SQL(storage.operators),
        options=sql.SQL(", ").join(options),
        mark=build_mark(name),
    )


def render_vector(index: Index, setting: Ann, vector: sql.Composable) -> sql.Composable:
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
