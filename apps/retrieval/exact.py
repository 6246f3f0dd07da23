"""Exact nearest neighbours by matrix product."""

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.ranking import exact_top, nominate, pair_scores
from benchbench.ir.records import Positions, ScoredList, Scores

Vectors = NDArray[np.float32]

SIMILARITY_BYTES = 64 * 2**20  # what the float32 similarities of all queries with one block of vectors may take


def nearest(
    vectors: Vectors,
    queries: Vectors,
    depth: int,
    *,
    mask: NDArray[np.bool_] | None = None,
) -> list[ScoredList]:
    """The best `depth` rows of `vectors` (n, d) for each of `queries` (q, d), by inner product, then row number.

    `mask` (n,) admits rows before they are ranked. Products are made block by block of vectors, in float32; what is
    ranked are float64 scores of single pairs, so that neither block nor batch nor thread shows in a ranking
    (`exact_top`). Besides the vectors it takes about SIMILARITY_BYTES of memory.
    """
    admitted = np.arange(len(vectors)) if mask is None else np.flatnonzero(mask)
    matrix = vectors if mask is None else vectors[admitted]
    nominees = _nominate(matrix, queries, depth)
    return [_best(matrix, admitted, query, *named, depth) for query, named in zip(queries, nominees, strict=True)]


def _nominate(matrix: Vectors, queries: Vectors, depth: int) -> list[tuple[Positions, NDArray[np.float32]]]:
    """Per query, rows that may be among its best, ascending, and their float32 similarities."""
    rows = max(depth, SIMILARITY_BYTES // (4 * max(1, len(queries))))
    named: list[list[Positions]] = [[] for _ in queries]
    kept: list[list[NDArray[np.float32]]] = [[] for _ in queries]
    for start in range(0, len(matrix), rows):
        for number, similarities in enumerate(queries @ matrix[start : start + rows].T):
            chosen = nominate(similarities, depth)
            named[number].append(chosen + start)
            kept[number].append(similarities[chosen])
    nothing = np.empty(0, np.int64), np.empty(0, np.float32)
    return [
        (np.concatenate(one), np.concatenate(other)) if one else nothing for one, other in zip(named, kept, strict=True)
    ]


def _best(
    matrix: Vectors,
    admitted: Positions,
    query: Vectors,
    rows: Positions,
    similarities: NDArray[np.float32],
    depth: int,
) -> ScoredList:
    def rescore(places: Positions) -> Scores:
        return pair_scores(matrix[rows[places]], query)

    best = exact_top(similarities, depth, rescore)
    return ScoredList(admitted[rows[best.ids]], best.scores)
