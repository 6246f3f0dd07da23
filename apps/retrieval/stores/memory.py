"""Vectors in the memory of this process, searched exactly by NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.exact import nearest
from apps.retrieval.filters import admits
from apps.retrieval.stores.base import Metadata, StoreError, Vectors
from benchbench.ir.records import Positions, ScoredList


@dataclass
class _Collection:
    """Vectors in the order of their ids."""

    vectors: Vectors
    ids: Positions = field(default_factory=lambda: np.empty(0, np.int64))
    metadata: list[Metadata] = field(default_factory=list)


class MemoryStore:
    """Ends with the process. Each insertion copies the collection: meant to be filled at once."""

    backend_name = "memory"

    def __init__(self) -> None:
        self._collections: dict[str, _Collection] = {}

    def create_collection(self, name: str, dimension: int) -> None:
        if name in self._collections:
            raise StoreError(f"The collection {name!r} exists already in memory; delete it first.")
        self._collections[name] = _Collection(np.empty((0, dimension), np.float32))

    def insert(
        self, collection: str, ids: Positions, vectors: Vectors, metadata: Sequence[Metadata] | None = None
    ) -> None:
        kept = self._find(collection)
        all_ids = np.concatenate([kept.ids, np.asarray(ids, np.int64)])
        if len(np.unique(all_ids)) < len(all_ids):
            raise StoreError(f"The collection {collection!r} has a vector of one of these ids already.")
        order = np.argsort(all_ids)
        everything = [*kept.metadata, *(metadata or [{}] * len(ids))]
        self._collections[collection] = _Collection(
            np.concatenate([kept.vectors, vectors])[order], all_ids[order], [everything[place] for place in order]
        )

    def search(self, collection: str, queries: Vectors, top_k: int, filter: Metadata | None = None) -> list[ScoredList]:
        kept = self._find(collection)
        lists = nearest(kept.vectors, queries, top_k, mask=_mask(kept.metadata, filter) if filter else None)
        return [ScoredList(kept.ids[rows.ids], rows.scores) for rows in lists]

    def count(self, collection: str) -> int:
        return len(self._collections[collection].ids) if collection in self._collections else 0

    def delete_collection(self, name: str) -> None:
        self._collections.pop(name, None)

    def close(self) -> None:
        self._collections.clear()

    def _find(self, name: str) -> _Collection:
        try:
            return self._collections[name]
        except KeyError:
            raise StoreError(f"There is no collection {name!r} in memory; create it first.") from None


def _mask(metadata: Sequence[Metadata], filter: Metadata) -> NDArray[np.bool_]:
    return np.array([admits(row, filter) for row in metadata], bool)
