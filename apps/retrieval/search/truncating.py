"""Exact search by the first dimensions of vectors, as encoders trained for it allow.

Kusupati et al., "Matryoshka Representation Learning", NeurIPS 2022.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from apps.retrieval import exact
from benchbench.errors import BenchbenchError
from benchbench.ir.records import ScoredList

Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]

ROWS_AT_ONCE = 2**16


class TruncationError(BenchbenchError):
    """A vector that has no direction in the dimensions that are left of it."""

    code = "truncation"


class QueryTruncationError(TruncationError):
    """A query's vector that has none: the others of its batch may have one."""


class TruncatedView:
    """An open index as a strategy sees it, by the first `dimensions` of its vectors (n, d). Raises TruncationError."""

    def __init__(self, vectors: Vectors, dimensions: int) -> None:
        self._dimensions = dimensions
        self._vectors = truncated(vectors, dimensions, what="chunk")

    @property
    def nbytes(self) -> int:
        return self._vectors.nbytes

    def nearest(self, queries: Vectors, depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """The nearest chunks to each of `queries` (q, d) among those that `mask` (n,) admits."""
        return exact.nearest(self._vectors, truncated(queries, self._dimensions, what="query"), depth, mask=mask)


def truncated(vectors: Vectors, dimensions: int, *, what: Literal["chunk", "query"]) -> Vectors:
    """The first `dimensions` of each vector (n, d), of length 1: (n, dimensions). Raises TruncationError.

    Lengths are sums of float64 squares, row by row, so that a vector comes out the same bits in any batch.
    """
    kept = np.empty((len(vectors), dimensions), np.float32)
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        part = vectors[start : start + ROWS_AT_ONCE, :dimensions].astype(np.float64, order="C")
        lengths = np.sqrt(np.einsum("nd,nd->n", part, part))
        if not lengths.all():
            row = start + int(np.argmin(lengths))
            error, whose = (QueryTruncationError, "the query") if what == "query" else (TruncationError, f"chunk {row}")
            raise error(
                f"The first {dimensions} dimensions of the vector of {whose} are all zero: compare more dimensions."
            )
        kept[start : start + ROWS_AT_ONCE] = part / lengths[:, None]
    return kept
