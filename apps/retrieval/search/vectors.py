"""The vectors of an index: in its own pgvector table, and in a mapped file on each machine that searches."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray
from psycopg import sql

from apps.retrieval.filters import PLACES
from apps.retrieval.fingerprints import fingerprint
from apps.retrieval.models import Index
from apps.retrieval.stores.base import StoreError, Vectors
from benchbench.database.binary import HEADER, NULL_SIZE, copy_into
from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import find_flaws
from benchbench.ir.records import Positions
from benchbench.local_files.sealed import load_array

Rows = NDArray[np.void]
Metadata = Mapping[str, Any]

MAX_DIMENSION = 16_000  # limit of pgvector's type `vector`
COPY_ROWS = 500  # few enough for the rows to stay in the processor's cache until they are sent

# In binary COPY a vector is two uint16 (dimension, unused) and float4s, and a jsonb is a format number and its text.
# NumPy lays out the rows: pgvector's own conversion, row by row in Python, takes longer than PostgreSQL's storing.
JSONB_FORMAT = b"\x01"


def create_table(name: str, dimension: int) -> None:
    """Create the table of an index's vectors, in the caller's transaction. Raises StoreError."""
    if not 1 <= dimension <= MAX_DIMENSION:
        raise StoreError(f"Vectors for pgvector must have 1 to {MAX_DIMENSION:,} dimensions, not {dimension:,}.")
    if _exists(name):
        raise StoreError(f"The table {name!r} already exists; delete it first.")
    _execute(
        sql.SQL(
            "CREATE TABLE {table} (id integer PRIMARY KEY, embedding vector({dimension}) NOT NULL, place integer, "
            "metadata jsonb)"
        ).format(table=sql.Identifier(name), dimension=sql.Literal(dimension))
    )


def insert_rows(
    table: str,
    ids: Positions,
    vectors: Vectors,
    metadata: Sequence[Metadata] | None = None,
    places: Positions | None = None,
) -> None:
    """Insert vectors (n, d) under ids (n,). Without `metadata` the column is null, and no filter admits the rows.

    `places` (n,) are those of their documents (`apps.retrieval.filters`), by default the last one.
    """
    places = np.full(len(ids), PLACES - 1) if places is None else places
    with copy_into(table, ("id", "embedding", "place", "metadata")) as copy:
        for start in range(0, len(ids), COPY_ROWS):
            span = slice(start, start + COPY_ROWS)
            rows = _build_rows(ids[span], vectors[span], places[span])
            copy.write(rows.view(np.uint8).data if metadata is None else b"".join(_annotate(rows, metadata[span])))


def count_rows(table: str) -> int:
    """Return the number of rows, 0 if the table does not exist."""
    if not _exists(table):
        return 0
    return int(_fetch_value(sql.SQL("SELECT count(*) FROM {table}").format(table=sql.Identifier(table))))


def load_ids(table: str) -> Positions:
    """Return the stored ids, ascending."""
    statement = sql.SQL("SELECT id FROM {table} ORDER BY id").format(table=sql.Identifier(table))
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return np.fromiter((row[0] for row in cursor.fetchall()), np.int64)


def load_vectors(table: str, dimension: int, ids: Sequence[int]) -> tuple[Positions, Vectors]:
    """Return the vectors of some ids as (ids, vectors), by ascending id."""
    blocks = list(read_table(table, dimension, ids))
    none = (np.empty(0, np.int64), np.empty((0, dimension), np.float32))
    id_blocks, vectors = zip(none, *blocks, strict=True)
    return np.concatenate(id_blocks), np.concatenate(vectors)


def read_table(table: str, dimension: int, ids: Sequence[int] | None = None) -> Iterator[tuple[Positions, Vectors]]:
    """Yield all vectors, or those of `ids`, as (ids, vectors), by ascending id, some hundred at a time."""
    row = np.dtype(_build_layout(dimension))
    such = sql.SQL("") if ids is None else sql.SQL("WHERE id = ANY({ids})").format(ids=sql.Literal(list(ids)))
    statement = sql.SQL("COPY (SELECT id, embedding FROM {table} {such} ORDER BY id) TO STDOUT (FORMAT BINARY)").format(
        table=sql.Identifier(table), such=such
    )
    buffer = bytearray()
    skip = len(HEADER)
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        for data in copy:
            buffer += data
            row_count = (len(buffer) - skip) // row.itemsize
            if row_count >= COPY_ROWS:
                yield _read(buffer, row, skip, row_count)
                buffer, skip = buffer[skip + row_count * row.itemsize :], 0
    if row_count := (len(buffer) - skip) // row.itemsize:
        yield _read(buffer, row, skip, row_count)


def _exists(name: str) -> bool:
    return _fetch_value("SELECT to_regclass(%s)", [sql.Identifier(name).as_string(None)]) is not None


def _execute(statement: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _fetch_value(statement: Any, parameters: Sequence[Any] = ()) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()[0]


def _build_layout(dimension: int) -> list[tuple[Any, ...]]:
    """Return the fields of a row of the COPY stream: the number of columns, then size and value of each."""
    return [
        ("columns", ">i2"),
        ("id_size", ">i4"),
        ("id", ">i4"),
        ("size", ">i4"),
        ("dimension", ">u2"),
        ("unused", ">u2"),
        ("vector", ">f4", (dimension,)),
    ]


def _build_rows(ids: Positions, vectors: Vectors, places: Positions) -> Rows:
    """Return the rows of a COPY stream, without metadata."""
    dimension = vectors.shape[1]
    rows = np.zeros(
        len(ids), [*_build_layout(dimension), ("place_size", ">i4"), ("place", ">i4"), ("metadata_size", ">i4")]
    )
    rows["columns"] = 4
    rows["id_size"] = 4
    rows["id"] = ids
    rows["size"] = 4 + 4 * dimension
    rows["dimension"] = dimension
    rows["vector"] = vectors
    rows["place_size"] = 4
    rows["place"] = places
    rows["metadata_size"] = NULL_SIZE
    return rows


def _annotate(rows: Rows, metadata: Sequence[Metadata]) -> Iterator[bytes]:
    """Yield the bytes of each row, with its metadata replacing the null."""
    for row, row_metadata in zip(rows, metadata, strict=True):
        value = JSONB_FORMAT + json.dumps(dict(row_metadata)).encode()
        yield row.tobytes()[:-4] + struct.pack("!i", len(value)) + value


def _read(stream: bytearray, row: np.dtype[np.void], skip: int, count: int) -> tuple[Positions, Vectors]:
    rows = np.frombuffer(stream, row, count, skip)
    return rows["id"].astype(np.int64), rows["vector"].astype(np.float32)


class VectorsError(BenchbenchError):
    """The table of an index is incomplete or has an invalid vector."""

    code = "vectors"


def locate_vectors(index: Index) -> Path:
    """Return this machine's file of an index's vectors. A ready index never changes, so its id identifies them."""
    return Path(settings.BENCHBENCH_VECTOR_DIR) / f"{index.pk.hex}.vectors"


def map_vectors(index: Index) -> NDArray[np.float32]:
    """Return the vectors of a ready index by position, (n, d), mapped read-only from a file of this machine.

    Processes share its pages. If the file is missing or invalid, it is written from PostgreSQL, by
    `benchbench.local_files.sealed`. Raises VectorsError and OutputError.
    """
    assert index.chunk_set is not None
    assert index.dimension is not None
    file = locate_vectors(index)
    shape = (index.chunk_set.vector_count, index.dimension)
    if not shape[0]:
        return np.empty(shape, np.float32)
    holds = fingerprint(index=index.pk.hex, content=index.fingerprint)
    return load_array(file, np.float32, shape, holds=holds, make=lambda: _read_table_rows(index, *shape))


def _read_table_rows(index: Index, count: int, dimension: int) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors in the table of an index, checking each. Raises VectorsError."""
    read = 0
    for positions, rows in read_table(index.vector_table, dimension):
        if not np.array_equal(positions, np.arange(read, read + len(rows))) or read + len(rows) > count:
            raise build_table_error(index)
        if wrong := find_flaws(rows):
            row, flaw = next(iter(wrong.items()))
            raise VectorsError(
                f'The table of the index "{index}" has a vector for chunk {read + row:,} that is {flaw}: delete the '
                "index and build it again."
            )
        yield rows
        read += len(rows)
    if read != count:
        raise build_table_error(index)


def build_table_error(index: Index) -> VectorsError:
    """Return the error for a table that does not match its index."""
    return VectorsError(
        f'The table of the index "{index}" does not hold one vector for each of its chunks: restore the database, or '
        "delete the index and build it again."
    )
