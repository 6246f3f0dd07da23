"""sqlite-vec: exact search in one file of SQLite."""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from apps.retrieval.stores.base import Mask, Nominate, Vectors
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import Positions

FILE = "vectors.sqlite"
MAX_DIMENSION = 8192
MAX_NEIGHBOURS = 4096  # limit of its search by MATCH; above it SQLite computes and sorts all distances
AMONG = " AND rowid IN (SELECT value FROM json_each(?))"
MATCH = "SELECT rowid FROM chunks WHERE embedding MATCH ? AND k = ?{among}"
SCAN = "SELECT rowid FROM chunks WHERE true{among} ORDER BY vec_distance_cosine(embedding, ?) LIMIT ?"


class SqliteVecCollection:
    """A table of sqlite-vec, read-only. Each thread has its own connection, which serves one at a time."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._connections: dict[int, Any] = {}
        self._dimension = int(self._connection.execute("SELECT dimension FROM facts").get)

    @property
    def _connection(self) -> Any:
        thread = threading.get_ident()
        if thread not in self._connections:
            self._connections[thread] = _connect(self._file, write=False)
        return self._connections[thread]

    @property
    def shape(self) -> tuple[int, int]:
        return int(self._connection.execute("SELECT count(*) FROM chunks").get), self._dimension

    def build_nominator(self, setting: Ann, mask: Mask | None) -> Nominate:
        among = "" if mask is None else AMONG
        admitted = () if mask is None else (json.dumps(np.flatnonzero(mask).tolist()),)
        match, scan = MATCH.format(among=among), SCAN.format(among=among)

        def nominate(query: Vectors, depth: int) -> Positions:
            vector = query.tobytes()
            if depth <= MAX_NEIGHBOURS:
                rows = self._connection.execute(match, (vector, depth, *admitted))
            else:
                rows = self._connection.execute(scan, (*admitted, vector, depth))
            return np.fromiter((row[0] for row in rows), np.int64)

        return nominate

    def read_back(self, setting: Ann) -> Mapping[str, Any]:
        return {"distance": "cosine", "vec_version": self._connection.execute("SELECT vec_version()").get}

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()


class SqliteVecStore:
    """The store sqlite-vec, opened with APSW: Python's own sqlite3 is often built without extensions."""

    name = "sqlite_vec"
    packages = {"sqlite-vec": "sqlite_vec", "apsw": "apsw"}
    fixed = True

    def describe_obstacle(self, setting: Ann, count: int, dimension: int) -> str:
        return f"it allows at most {MAX_DIMENSION:,} dimensions" if dimension > MAX_DIMENSION else ""

    def fill(self, folder: Path, vectors: Vectors, setting: Ann) -> None:
        dimension = vectors.shape[1]
        connection = _connect(folder / FILE, write=True)
        with connection:
            connection.execute("CREATE TABLE facts (dimension INTEGER)")
            connection.execute("INSERT INTO facts VALUES (?)", (dimension,))
            connection.execute(
                f"CREATE VIRTUAL TABLE chunks USING vec0(embedding float[{dimension}] distance_metric=cosine)"
            )
            connection.executemany(
                "INSERT INTO chunks(rowid, embedding) VALUES (?, ?)",
                ((position, vector.tobytes()) for position, vector in enumerate(vectors)),
            )
        connection.close()

    def open(self, folder: Path, setting: Ann) -> SqliteVecCollection:
        return SqliteVecCollection(folder)


def _connect(file: Path, *, write: bool) -> Any:
    import apsw
    import sqlite_vec

    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if write else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(str(file), flags=flags)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
    return connection
