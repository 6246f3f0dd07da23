"""Arms of stores under test: collections in a folder, searched as a benchmark searches them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.retrieval.availability import lack
from apps.retrieval.filters import Filter, admits
from apps.retrieval.search.approximate import ApproximateView
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import Kept, collection_name, kept_collection
from benchbench.ir.planning.ann import Ann
from benchbench.ir.records import ScoredList

Vectors = NDArray[np.float32]

# An arm of each method that looks at everything, so that it finds what exact search finds.
WIDEST = {
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
        if lacking := lack({"store": Ann.parse(text).store}):
            pytest.skip(f"{lacking[0].upper()}{lacking[1:]}.")


def unit(count: int, dimension: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def keep(folder: Path, text: str, vectors: Vectors, *, holds: str = "") -> Kept:
    setting = Ann.parse(text)
    return kept_collection(folder / collection_name(setting), STORES[setting.store], setting, vectors, holds=holds)


class Arm:
    """A setting on a collection of `vectors`, whose metadata filters ask for."""

    def __init__(
        self, folder: Path, text: str, vectors: Vectors, metadata: Sequence[dict[str, object]] | None = None
    ) -> None:
        self.setting = Ann.parse(text)
        self.vectors = vectors
        self.metadata = metadata or [{}] * len(vectors)
        self.folder = folder / collection_name(self.setting)
        self.kept = keep(folder, text, vectors)

    def search(self, queries: Vectors, depth: int, filter: Filter | None = None) -> list[ScoredList]:
        self.view = ApproximateView(None, self.vectors, self.setting, filter or {}, self.kept.collection)
        mask = np.array([admits(one, filter) for one in self.metadata], bool) if filter else None
        return self.view.nearest(queries, depth, mask=mask)
