"""The protocol of vector stores."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.records import Positions, ScoredList

Vectors = NDArray[np.float32]
Metadata = Mapping[str, Any]


class StoreError(BenchbenchError):
    """A vector store that is unknown, or cannot do what is asked."""

    code = "store"


class VectorStore(Protocol):
    """Keeps vectors of unit length in named collections, and finds the nearest ones.

    An id is the position of a chunk, a number from 0. A collection's name is made by the caller of letters, digits and
    underscores. A filter (`apps.retrieval.filters`) names metadata keys and what each must have; it applies before
    ranking, and a vector without the key does not pass.
    """

    @property
    def backend_name(self) -> str: ...

    def create_collection(self, name: str, dimension: int) -> None:
        """Make an empty collection. Raises StoreError if it exists, or cannot hold that many dimensions."""

    def insert(
        self, collection: str, ids: Positions, vectors: Vectors, metadata: Sequence[Metadata] | None = None
    ) -> None:
        """Add vectors (n, d) under `ids` (n,), which must be new, with one mapping of metadata each, or none."""

    def search(self, collection: str, queries: Vectors, top_k: int, filter: Metadata | None = None) -> list[ScoredList]:
        """The best `top_k` for each of `queries` (q, d), by inner product down, then id."""

    def count(self, collection: str) -> int:
        """Return how many vectors a collection holds; 0 where there is no such collection."""

    def delete_collection(self, name: str) -> None:
        """Remove a collection with all it holds, if it exists."""

    def close(self) -> None:
        """Release what the store holds open in this process."""
