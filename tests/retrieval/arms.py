"""Arms of stores under test: collections in a folder, or tables in PostgreSQL, searched as a benchmark does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from django.db import connection
from numpy.typing import NDArray

from apps.retrieval.availability import describe_missing
from apps.retrieval.filters import Filter
from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.search import vectors as tables
from apps.retrieval.search.ann_indexes import make_ann_index
from apps.retrieval.search.approximate import ApproximateView, SearchFault
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import OpenCollection, find_version, name_collection, open_collection
from benchbench.database.bin import drop_table
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import ScoredList

Vectors = NDArray[np.float32]

# An arm of each method that looks at everything, so that it finds what exact search finds.
WIDEST = {
    "memory:compressed": "compressed(rescore=10000)",
    "pgvector:exact": "pgvector:exact",
    "pgvector:hnsw": "hnsw(ef_search=1000, iterative=strict)",
    "pgvector:ivfflat": "ivfflat(lists=4, probes=4)",
    "sqlite_vec:exact": "sqlite_vec:exact",
    "chromadb:hnsw": "chromadb:hnsw(ef_search=5000)",
    "faiss:exact": "faiss:exact",
    "faiss:hnsw": "faiss:hnsw(ef_search=5000)",
    "faiss:ivfpq": "faiss:ivfpq(lists=4, probes=4, m=8)",
    "lancedb:exact": "lancedb:exact",
    "lancedb:ivfpq": "lancedb:ivfpq(m=8)",
}
LEARNS = ("faiss:ivfpq", "lancedb:ivfpq")  # from some hundred vectors; and nominates by rounded ones


def require_installed(*texts: str) -> None:
    """Skip the test where the store of one of the settings is not installed, by the sentence that mends it."""
    for text in texts:
        if lacking := describe_missing({"store": Ann.parse(text).store}):
            pytest.skip(f"{lacking[0].upper()}{lacking[1:]}.")


def unit(count: int, dimension: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def admits(metadata: Mapping[str, object], filter: Filter) -> bool:
    return all(metadata.get(key) == value for key, value in filter.items())


def keep(folder: Path, text: str, vectors: Vectors, *, holds: str = "") -> OpenCollection:
    setting = Ann.parse(text)
    return open_collection(folder / name_collection(setting), STORES[setting.store], setting, vectors, holds=holds)


def index_of(vectors: Vectors, metadata: Sequence[dict[str, object]] | None) -> Index:
    """An index that is not a row, with a table of these vectors."""
    index = Index(dimension=vectors.shape[1], chunk_set=ChunkSet(chunk_count=len(vectors)))
    tables.create_table(index.vector_table, vectors.shape[1])
    tables.insert_rows(index.vector_table, np.arange(len(vectors)), vectors, metadata)
    return index


def version_of(name: str) -> str:
    """The version of the store of an arm: of the package, or of PostgreSQL's extension."""
    store = name.partition(":")[0]
    if store in STORES:
        return find_version(STORES[store])
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        return str(cursor.fetchone()[0])


def lack_of(text: str, count: int, dimension: int) -> str:
    """Why the store of a setting could not hold so many vectors; "" where it could. pgvector holds any."""
    setting = Ann.parse(text)
    return STORES[setting.store].describe_obstacle(setting, count, dimension) if setting.store in STORES else ""


class Arm:
    """A setting on a collection of `vectors`, whose metadata filters ask for; a table in PostgreSQL, of pgvector."""

    def __init__(self, folder: Path, text: str, vectors: Vectors, metadata: Sequence[dict] | None = None) -> None:
        self.setting = Ann.parse(text)
        self.vectors = vectors
        self.metadata = metadata or [{}] * len(vectors)
        self.index: Index | None = None
        if self.setting.store in STORES:
            self.folder = folder / name_collection(self.setting)
            self.kept = keep(folder, text, vectors)
        else:
            self.index = index_of(vectors, metadata)
            if not self.setting.compares_all:
                make_ann_index(self.index, self.setting)

    def remove(self) -> None:
        if self.index is not None:
            drop_table(self.index.vector_table)

    def search(self, queries: Vectors, depth: int, filter: Filter | None = None) -> list[ScoredList]:
        collection = self.kept.collection if self.index is None else None
        self.view = ApproximateView(self.index, self.vectors, self.setting, filter or {}, collection)
        mask = np.array([admits(one, filter) for one in self.metadata], bool) if filter else None
        try:
            return self.view.find_nearest(queries, depth, mask=mask)
        except SearchFault as fault:
            raise fault.error from None
