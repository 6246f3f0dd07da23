"""Exact nearest neighbours by matrix product, also by the first dimensions of vectors alone."""

import sys
from collections.abc import Iterable
from typing import Literal

import numpy as np

from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import RESCORE_BAND, RankingError, nominate, pair_scores, top
from benchbench.ir.records import Mask, Positions, ScoredList, Vectors

SIMILARITY_BYTES = 64 * 2**20  # what the float32 similarities of all queries with one block of vectors may take


def nearest(
    vectors: Vectors,
    queries: Vectors,
    depth: int,
    *,
    mask: Mask | None = None,
    device: str | None = None,
) -> list[ScoredList]:
    """The best `depth` rows of `vectors` (n, d) for each of `queries` (q, d), by inner product, then row number.

    `mask` (n,) admits rows before they are ranked. Products are made block by block of vectors, in float32; what is
    ranked are float64 scores of single pairs, so that neither block nor batch nor thread shows in a ranking
    (`nominate`). Besides the vectors it takes about SIMILARITY_BYTES of memory. torch makes the products on `device`;
    by default that is a GPU that models of this process use, and NumPy makes them where there is none.
    """
    device = device or _gpu()
    admitted = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    matrix = vectors if mask is None else _rows(vectors, admitted)
    nominees = _nominate(matrix, queries, depth, device)
    return [
        top(pair_scores(matrix[rows], query), depth, ids=admitted[rows])
        for query, rows in zip(queries, nominees, strict=True)
    ]


def _rows(vectors: Vectors, admitted: Positions) -> Vectors:
    """The vectors of ascending rows: where they lie side by side, as those of a level do, without a copy."""
    if len(admitted) and admitted[-1] - admitted[0] + 1 == len(admitted):
        return vectors[admitted[0] : admitted[-1] + 1]
    return vectors[admitted]


def _gpu() -> str | None:
    """The GPU, where torch is loaded and makes products in full float32: a nomination needs that."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or torch.backends.cuda.matmul.allow_tf32:
        return None
    return "cuda"


def _nominate(matrix: Vectors, queries: Vectors, depth: int, device: str | None) -> list[Positions]:
    """Per query, the rows that may be among its best, ascending."""
    rows = max(depth, SIMILARITY_BYTES // (4 * max(1, len(queries))))
    named: list[list[Positions]] = [[] for _ in queries]
    kept: list[list[Vectors]] = [[] for _ in queries]
    for start in range(0, len(matrix), rows):
        block = matrix[start : start + rows]
        nominated = _by_numpy(block, queries, depth) if device is None else _by_torch(block, queries, depth, device)
        for number, (chosen, similarities) in enumerate(nominated):
            named[number].append(chosen + start)
            kept[number].append(similarities)
    return [_of_all_blocks(*blocks, depth) for blocks in zip(named, kept, strict=True)]


def _of_all_blocks(named: list[Positions], kept: list[Vectors], depth: int) -> Positions:
    """Of the rows that each block named, those that may be among the best of all."""
    if len(named) < 2:
        return named[0] if named else np.empty(0, np.int64)
    return np.concatenate(named)[nominate(np.concatenate(kept), depth)]


def _by_numpy(block: Vectors, queries: Vectors, depth: int) -> Iterable[tuple[Positions, Vectors]]:
    for similarities in queries @ block.T:
        chosen = nominate(similarities, depth)
        yield chosen, similarities[chosen]


def _by_torch(block: Vectors, queries: Vectors, depth: int, device: str) -> Iterable[tuple[Positions, Vectors]]:
    """What `_by_numpy` does, for all queries at once; only what is nominated leaves the device."""
    import torch

    similarities = torch.tensor(queries, device=device) @ torch.tensor(block, device=device).T
    best = similarities.topk(min(depth, len(block)), dim=1).values
    if best.isnan().any():  # topk takes them for the greatest
        raise RankingError("A similarity is not a number (NaN): look for vectors of zeros or infinities.")
    numbers, columns = (similarities >= best[:, -1:] - RESCORE_BAND).nonzero(as_tuple=True)
    kept = similarities[numbers, columns].cpu().numpy()
    ends = np.searchsorted(numbers.cpu().numpy(), np.arange(1, len(queries)))
    return zip(np.split(columns.cpu().numpy(), ends), np.split(kept, ends), strict=True)


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
        return nearest(self._vectors, truncated(queries, self._dimensions, what="query"), depth, mask=mask)


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
