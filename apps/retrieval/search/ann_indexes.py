"""Approximate indexes on an index's table of vectors: made when a benchmark first needs them, dropped with the table.

There may be several on one table, also alike in kind, and PostgreSQL has no way to be told which to use. So each is a
partial index, over the rows whose id is not one certain negative number, its mark. As ids are positions, that is all of
them; but only a statement that repeats the condition can use the index, and so each names the one that it means.
"""

import json
import time
from dataclasses import dataclass
from typing import Any, NamedTuple
from zlib import crc32

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from apps.retrieval.models import Index
from apps.retrieval.search.holding import be_alone
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.ann import Ann

BUILD_WORKERS = 4  # PostgreSQL takes fewer where the table is small or max_parallel_workers says so
LEAST_BUILD_BYTES = 64 * 2**20  # PostgreSQL's default of maintenance_work_mem


class AnnIndexError(BenchbenchError):
    """An approximate index that cannot be made."""

    code = "ann_index"


class Storage(NamedTuple):
    """What an approximate index keeps of each vector. Inner products of unit vectors order as cosines do."""

    column: str
    query: str
    operator: str
    operators: str
    max_dimension: int
    bits: int


STORAGES = {
    "vector": Storage("embedding", "{vector}::vector", "<#>", "vector_ip_ops", 2000, 32),
    "halfvec": Storage(
        "(embedding::halfvec({dimension}))", "{vector}::halfvec({dimension})", "<#>", "halfvec_ip_ops", 4000, 16
    ),
    "binary": Storage(
        "(binary_quantize(embedding)::bit({dimension}))",
        "binary_quantize({vector}::vector)::bit({dimension})",
        "<~>",
        "bit_hamming_ops",
        64_000,
        1,
    ),
}


@dataclass(frozen=True, slots=True)
class AnnIndex:
    """An approximate index there is: its name in PostgreSQL, its size, and how long it took to build."""

    name: str
    bytes: int
    build_seconds: float


def check_ann(index: Index, setting: Ann) -> None:
    """Raise AnnIndexError where pgvector could not build this for vectors of that many dimensions."""
    if setting.compares_all or index.dimension is None:
        return
    fits = {name: storage.max_dimension for name, storage in STORAGES.items()}
    if index.dimension > fits[setting["storage"]]:
        raise AnnIndexError(
            f'{setting} cannot index the {index.dimension:,} dimensions of "{index}": pgvector indexes at most '
            + ", ".join(f"{most:,} with storage={name}" for name, most in fits.items())
            + ".",
            field="ann",
        )


def make_ann_index(index: Index, setting: Ann) -> AnnIndex:
    """Return the approximate index that `setting` searches, built if there is none yet: whole, or not at all.

    Of several workers one builds and the others wait for it. HNSW and IVFFlat draw random numbers when they are built,
    so an index that was built again may find other chunks; this one stays. Building locks out writers, and a ready
    index has none. Raises AnnIndexError.
    """
    check_ann(index, setting)
    name = ann_index_name(index, setting)
    with transaction.atomic(), connection.cursor() as cursor:
        be_alone(name)
        if existing := find_ann_index(name):
            return existing
        for parameter, value in _build_parameters(index, setting).items():
            cursor.execute("SELECT set_config(%s, %s, true)", [parameter, value])
        started = time.perf_counter()
        cursor.execute(_definition(index, setting, name))
        # Kept as the index's comment, so that it lives and dies with it.
        facts = json.dumps({"build_seconds": round(time.perf_counter() - started, 3)})
        cursor.execute(
            sql.SQL("COMMENT ON INDEX {name} IS {facts}").format(name=sql.Identifier(name), facts=sql.Literal(facts))
        )
        made = find_ann_index(name)
        assert made is not None
        return made


def ann_index_name(index: Index, setting: Ann) -> str:
    """Name the index in PostgreSQL that a setting searches, of at most 63 characters: equal builds, one name."""
    return "_".join([index.vector_table, setting.method, *map(str, setting.build.values())])


def find_ann_index(name: str) -> AnnIndex | None:
    """Return the index of that name, if it is there and can be used."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_relation_size(indexrelid), obj_description(indexrelid, 'pg_class') FROM pg_index "
            "WHERE indexrelid = to_regclass(%s) AND indisvalid",
            [sql.Identifier(name).as_string(None)],
        )
        row = cursor.fetchone()
    return AnnIndex(name, row[0], json.loads(row[1] or "{}").get("build_seconds", 0.0)) if row else None


def mark(name: str) -> sql.Composable:
    """The condition, true of every row, by which a statement asks for the index `name`."""
    return sql.SQL("id <> {number}").format(number=sql.Literal(-1 - (crc32(name.encode()) >> 1)))


def column(setting: Ann, dimension: int) -> sql.Composable:
    """What the index is over."""
    return sql.SQL(STORAGES[setting["storage"]].column).format(dimension=sql.Literal(dimension))


def _definition(index: Index, setting: Ann, name: str) -> sql.Composable:
    assert index.dimension is not None
    options = [
        sql.SQL("{} = {}").format(sql.Identifier(option), sql.Literal(value))
        for option, value in setting.build.items()
        if option != "storage"
    ]
    return sql.SQL(
        "CREATE INDEX {name} ON {table} USING {method} ({column} {operators}) WITH ({options}) WHERE {mark}"
    ).format(
        name=sql.Identifier(name),
        table=sql.Identifier(index.vector_table),
        method=sql.SQL(setting.method),
        column=column(setting, index.dimension),
        operators=sql.SQL(STORAGES[setting["storage"]].operators),
        options=sql.SQL(", ").join(options),
        mark=mark(name),
    )


def _build_parameters(index: Index, setting: Ann) -> dict[str, Any]:
    """Memory for the whole index, within bounds: pgvector builds several times slower once it has to write in between.

    A neighbour in a graph takes 16 bytes; an element has 2 m of them on the lowest layer and about m above, and some
    200 bytes of its own.
    """
    assert index.chunk_set is not None
    assert index.dimension is not None
    graph = 200 + 3 * 16 * setting["m"] if setting.method == "hnsw" else 50
    needed = index.chunk_set.vector_count * (index.dimension * STORAGES[setting["storage"]].bits // 8 + graph)
    memory = max(LEAST_BUILD_BYTES, min(needed, settings.BENCHBENCH_ANN_BUILD_BYTES))
    return {"maintenance_work_mem": f"{memory // 1024}kB", "max_parallel_maintenance_workers": str(BUILD_WORKERS)}
