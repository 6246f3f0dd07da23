"""PostgreSQL's binary format: rows written by COPY, straight from NumPy arrays, and cursors that read it."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from json import dumps
from typing import Any, TypeVar, cast
from uuid import UUID

import numpy as np
import psycopg
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import BinaryField, Func, QuerySet
from numpy.typing import ArrayLike, NDArray
from psycopg import sql

# The format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
TRAILER = struct.pack("!h", -1)
NULL_SIZE = -1
NULL = struct.pack("!i", NULL_SIZE)
INT8_OID, INT4_OID, FLOAT8_OID, VARCHAR_OID = 20, 23, 701, 1043
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
FLUSH_BYTES = 2**20
ARRAY = struct.Struct("!iiiiii")  # the size of the field and the header of an array
ARRAYS_AT_ONCE = 500
ARRAY_HEAD = 20  # bytes: dimensions, null flag, type, length, lower bound
NOTHING = np.empty(0)
Item = TypeVar("Item")


def field(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def boolean(value: bool) -> bytes:
    return struct.pack("!i?", 1, value)


def int2(value: int) -> bytes:
    return struct.pack("!ih", 2, value)


def int4(value: int) -> bytes:
    return struct.pack("!ii", 4, value)


def int8(value: int) -> bytes:
    return struct.pack("!iq", 8, value)


def float8(value: float | None) -> bytes:
    return NULL if value is None else struct.pack("!id", 8, value)


def text(value: str) -> bytes:
    return field(value.encode())


def uuid(value: UUID) -> bytes:
    return field(value.bytes)


def json(value: object) -> bytes:
    """Return the format of a `jsonb` column: version 1, then the text."""
    return field(b"\x01" + dumps(value).encode())


def timestamp(value: datetime) -> bytes:
    """Return the format of a `timestamptz` column: microseconds since 2000."""
    return int8((value - EPOCH) // timedelta(microseconds=1))


def text_array(values: Sequence[str]) -> bytes:
    """Return an array of texts in the format of a `varchar[]` column."""
    if not values:
        return field(struct.pack("!iii", 0, 0, VARCHAR_OID))
    return field(struct.pack("!iiiii", 1, 0, VARCHAR_OID, len(values), 1) + b"".join(map(text, values)))


def encode_int8_arrays(column: Iterable[ArrayLike]) -> Iterator[bytes]:
    return _encode_arrays(column, INT8_OID, ">i8")


def encode_int4_arrays(column: Iterable[ArrayLike]) -> Iterator[bytes]:
    return _encode_arrays(column, INT4_OID, ">i4")


def encode_float8_arrays(column: Iterable[ArrayLike]) -> Iterator[bytes]:
    return _encode_arrays(column, FLOAT8_OID, ">f8")


def _encode_arrays(column: Iterable[ArrayLike], oid: int, kind: str) -> Iterator[bytes]:
    """Yield one-dimensional arrays without nulls: dimensions, null flag, type, length, lower bound, (size, value)s.

    Many arrays are converted at once, because the calls of NumPy take more time than the bytes.
    """
    for some in batched(column, ARRAYS_AT_ONCE):
        arrays = [np.asarray(values, kind) for values in some]
        lengths = [len(values) for values in arrays]
        cells = np.empty(sum(lengths), dtype=[("size", ">i4"), ("value", kind)])
        cells["size"] = np.dtype(kind).itemsize
        cells["value"] = np.concatenate(arrays)
        data, end = cells.tobytes(), 0
        for length in lengths:
            start, end = end, end + length * cells.itemsize
            if length:
                yield ARRAY.pack(ARRAY.size - 4 + end - start, 1, 0, oid, length, 1) + data[start:end]
            else:
                yield field(struct.pack("!iii", 0, 0, oid))


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut a stream into lists of `size`; the last list may be shorter."""
    stream = iter(items)
    while some := list(islice(stream, size)):
        yield some


@contextmanager
def copy_into(table: str, columns: Sequence[str]) -> Iterator[psycopg.Copy]:
    """Open a binary COPY into `table`. The caller writes whole rows; header and trailer are written here.

    The caller's types must be the columns' own: binary COPY converts nothing.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        copy.write(HEADER)
        yield copy
        copy.write(TRAILER)


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes]]) -> int:
    """Write rows of encoded fields (see the functions above) into `table`; return their number."""
    count = 0
    with copy_into(table, columns) as copy:
        buffer = bytearray()
        width = struct.pack("!h", len(columns))
        for count, row in enumerate(rows, start=1):  # noqa: B007  (the count is the result)
            buffer += width + b"".join(row)
            if len(buffer) > FLUSH_BYTES:
                copy.write(bytes(buffer))
                buffer.clear()
        copy.write(bytes(buffer))
    return count


def execute_each(statement: str, rows: Iterable[Sequence[object]]) -> None:
    """Execute a statement with each row of parameters in one pipeline: without waiting for the result of each."""
    with binary_cursor() as cursor:
        cursor.executemany(statement, rows)
        # After a pipeline PostgreSQL's timeout of idle transactions is off until another statement runs.
        cursor.execute("SELECT 1")


@contextmanager
def binary_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Open a cursor for raw bytes, on Django's connection and in its transaction. Raises Django's errors."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(cast("psycopg.Connection[Any]", connection.connection)) as raw:
        yield raw


def read_rows(values: QuerySet[Any, Any], *, streamed: bool = False) -> Iterator[Any]:
    """Yield the rows of a `values_list` of numbers, texts and arrays of them, in PostgreSQL's binary format.

    Django uses the text format, which takes five times as long for an array of scores. Values that Django converts
    (JSON, fields with a converter) are returned as psycopg reads them. `streamed` holds one row in memory at a time;
    run no other query before the last row.
    """
    statement = _build_statement(values)
    with binary_cursor() as cursor:
        yield from cursor.stream(statement, binary=True) if streamed else cursor.execute(statement, binary=True)


def _build_statement(values: QuerySet[Any, Any]) -> bytes:
    try:
        statement, parameters = values.query.sql_with_params()
    except EmptyResultSet:  # Django raises it for an empty list of ids
        return b"SELECT WHERE false"
    with connection.cursor() as cursor:
        text: str = cursor.cursor.mogrify(statement, parameters)
    return text.encode()


def select_array(column: str) -> Func:
    """Return the expression for an array in binary, which NumPy reads faster than one Python object per number."""
    return Func(column, function="array_send", output_field=BinaryField())


def view_array(data: bytes, kind: str) -> NDArray[Any]:
    """Return the view of a one-dimensional array without nulls."""
    cells = np.dtype([("size", ">i4"), ("value", kind)])
    array = np.frombuffer(data, cells, offset=ARRAY_HEAD)["value"] if len(data) > ARRAY_HEAD else NOTHING
    return array
