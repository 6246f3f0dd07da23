"""Exact nearest neighbours by matrix product."""

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.ranking import exact_top, pair_scores
from benchbench.ir.records import Positions, ScoredList, Scores

SIMILARITY_BYTES = 64 * 2**20  # what the float32 similarities of one block of queries may take


def nearest(
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    depth: int,
    *,
    mask: NDArray[np.bool_] | None = None,
) -> list[ScoredList]:
    """The best `depth` rows of `vectors` (n, d) for each of `queries` (q, d), by inner product, then row number.

    `mask` (n,) admits rows before they are ranked. Products are made block by block, in float32; what is ranked are
    float64 scores of single pairs, so that neither block nor batch nor thread shows in a ranking (`exact_top`).
    """
    admitted = None if mask is None else np.flatnonzero(mask)
    matrix = vectors if admitted is None else vectors[admitted]
    if not len(matrix):
        return [ScoredList.empty() for _ in queries]
    block = max(1, SIMILARITY_BYTES // (4 * len(matrix)))
    found: list[ScoredList] = []
    for start in range(0, len(queries), block):
        part = queries[start : start + block]
        found += [
            _best(matrix, query, similarities, depth, admitted)
            for query, similarities in zip(part, part @ matrix.T, strict=True)
        ]
    return found


def _best(
    matrix: NDArray[np.float32],
    query: NDArray[np.float32],
    similarities: NDArray[np.float32],
    depth: int,
    admitted: Positions | None,
) -> ScoredList:
    def rescore(rows: Positions) -> Scores:
        return pair_scores(matrix[rows], query)

    best = exact_top(similarities, depth, rescore)
    return best if admitted is None else ScoredList(admitted[best.ids], best.scores)
