"""Bulk writing by PostgreSQL's binary COPY, straight from NumPy arrays."""

import struct
import uuid
from collections.abc import Iterable, Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from psycopg import sql

# The format: https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
TRAILER = struct.pack("!h", -1)
NULL = struct.pack("!i", -1)
INT8_OID, FLOAT8_OID = 20, 701
FLUSH_BYTES = 2**20


def field(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def int2(value: int) -> bytes:
    return struct.pack("!ih", 2, value)


def int8(value: int) -> bytes:
    return struct.pack("!iq", 8, value)


def float8(value: float | None) -> bytes:
    return NULL if value is None else struct.pack("!id", 8, value)


def text(value: str) -> bytes:
    return field(value.encode())


def uuid_field(value: uuid.UUID) -> bytes:
    return field(value.bytes)


def int8_array(values: NDArray[np.int64]) -> bytes:
    return _array(values, INT8_OID, ">i8")


def float8_array(values: NDArray[np.float64]) -> bytes:
    return _array(values, FLOAT8_OID, ">f8")


def _array(values: NDArray[np.generic], oid: int, kind: str) -> bytes:
    """A one-dimensional array without nulls: dimensions, null flag, type, length, lower bound, then (size, value)s."""
    if not len(values):
        return field(struct.pack("!iii", 0, 0, oid))
    cells = np.empty(len(values), dtype=[("size", ">i4"), ("value", kind)])
    cells["size"] = 8
    cells["value"] = values
    return field(struct.pack("!iiiii", 1, 0, oid, len(values), 1) + cells.tobytes())


def copy_rows(table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes]]) -> int:
    """Write rows of encoded fields (see the functions above) into `table`; return how many.

    The caller's types must be the columns' own: binary COPY converts nothing.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    count = 0
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        buffer = bytearray(HEADER)
        width = struct.pack("!h", len(columns))
        for count, row in enumerate(rows, start=1):  # noqa: B007  (the count is the result)
            buffer += width + b"".join(row)
            if len(buffer) > FLUSH_BYTES:
                copy.write(bytes(buffer))
                buffer.clear()
        copy.write(bytes(buffer + TRAILER))
    return count
