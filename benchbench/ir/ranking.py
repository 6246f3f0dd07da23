"""Rankings of vectors and scores: order, re-scoring, recall, collapse to documents, threshold, cut and fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.records import Positions, ScoredList, Scores

UnitKind = Literal["dense", "sparse", "hybrid", "engine", "cross_encoder", "late_interaction"]

# Float32 similarities of unit vectors err by about 1e-7 (measured for 384 and 1,024 dimensions), differently in each
# kernel. A chunk of the true top can lie two such errors below the depth-th computed one; this is well above. It would
# not be for reduced precision: similarities must be computed in full float32, without TF32 or bfloat16.
RESCORE_BAND = 1e-5
COLUMNS_AT_ONCE = 4096  # of what einsum's buffers hold, 8192 numbers
SIFTED_GROUPS = 32  # scores in each group; fewer sift too little, more let too much pass


class RankingError(BenchbenchError):
    """The scores cannot be ordered."""

    code = "ranking"


def top(scores: Scores, depth: int, *, ids: Positions | None = None) -> ScoredList:
    """Return the best `depth` of `scores` (n,), by score down, then id up.

    `ids` (n,), ascending, names the chunk of each score; without it the chunks are 0..n-1. Linear in n plus the sort of
    what is kept. Raises RankingError when one of the best is not a number.
    """
    chosen = _find_reaching(scores, depth)
    chosen = chosen[(-scores[chosen]).argsort(kind="stable")[:depth]]  # equal scores stay in the order of their ids
    return ScoredList(chosen if ids is None else ids[chosen], scores[chosen])


def nominate(similarities: NDArray[np.float32], depth: int) -> Positions:
    """Return the positions, ascending, of the chunks that may be among the best `depth`, by float32 similarities (n,).

    Matrix products differ in their last bits with batch, block, thread and device, so they only nominate: every chunk
    within RESCORE_BAND of the depth-th similarity is named, to be scored again by `score_pairs`, and that score
    decides. Nominees of parts of a collection, put together, hold all nominees of the whole.
    """
    return _find_reaching(similarities, depth, band=RESCORE_BAND)


def score_pairs(vectors: NDArray[np.float32], query: NDArray[np.floating[Any]]) -> Scores:
    """Return the inner product of each of `vectors` (m, d) with `query` (d,), as float64 (m,).

    The score of a pair is the same bits alone or in any batch. BLAS does not promise that: it blocks a product by the
    shape of the whole. Here each product is one of float64 numbers, exact where both were float32, and NumPy's einsum,
    which calls no BLAS, adds along the contiguous last axis, row by row, in an order that depends on d alone: given
    float64 in C order, so that it need not convert, and few enough columns at once for its buffers, which would end in
    mid-row.
    """
    rows, columns = vectors.astype(np.float64, order="C"), query.astype(np.float64)
    scores: Scores = np.zeros(len(rows))
    for start in range(0, len(columns), COLUMNS_AT_ONCE):
        block = slice(start, start + COLUMNS_AT_ONCE)
        scores += np.einsum("md,d->m", rows[:, block], columns[block])
    return scores


def recall(
    retrieved: ScoredList, truth: ScoredList, k: int, *, of_same_set: bool = True, same_scores: bool = True
) -> float | None:
    """Return the share of the exact list's first `k` that an approximate list has among its first `k`; None if empty.

    Both have the same scores. A chunk counts if its score reaches that of the last exact one, so equally near chunks
    are interchangeable. The two may be searches of different sets, because a strategy that continues below another
    document sees other, perhaps nearer, chunks. Then a nearer chunk must be in the exact list as well.
    Without `same_scores`, a chunk counts by its score in the exact list.
    """
    expected = min(k, len(truth))
    if not expected:
        return None
    first = retrieved.head(k)
    counts = first.scores >= truth.scores[expected - 1]
    if not same_scores:
        counts = np.isin(first.ids, truth.ids[truth.scores >= truth.scores[expected - 1]])
    if not of_same_set:
        counts &= np.isin(first.ids, truth.ids) | (first.scores == truth.scores[expected - 1])
    return min(int(np.sum(counts)), expected) / expected


def mark_tied(scores: Scores, depth: int) -> NDArray[np.bool_]:
    """Return which of the first `depth` scores (n,), best first, equal a neighbour's, which may come after these."""
    is_same: NDArray[np.bool_] = np.concatenate([[False], scores[1:] == scores[:-1], [False]])
    return (is_same[1:] | is_same[:-1])[: min(depth, len(scores))]


def collapse(documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices, ascending, at which each document of a ranking of chunks occurs first: (n,) → (distinct,)."""
    if len(set(documents.tolist())) == len(documents):  # as where a document is one chunk
        return np.arange(len(documents))
    return np.sort(np.unique(documents, return_index=True)[1]).astype(np.int64, copy=False)


def scale_scores(kind: UnitKind, scores: Scores) -> Scores:
    """Return one query's list of scores on the scale [0, 1], with which thresholds are compared.

    dense and late_interaction: similarity clipped to [0, 1]. sparse: relative to the query's own best. hybrid:
    unchanged. engine: unchanged, since no threshold applies. cross_encoder: one sigmoid of the raw logit. Order is
    kept, but clipping may make scores equal.
    """
    match kind:
        case "dense" | "late_interaction":
            return np.minimum(np.maximum(scores, 0.0), 1.0)  # np.clip takes four times as long over a short list
        case "sparse":
            best = scores.max(initial=0.0)
            return np.maximum(scores / best, 0.0) if best > 0 else np.zeros_like(scores)
        case "hybrid" | "engine":
            return scores
        case "cross_encoder":
            falling = np.exp(-np.abs(scores))  # never overflows, for either sign
            return np.where(scores >= 0, 1.0, falling) / (1.0 + falling)
    raise ValueError(f"No kind of score is called {kind!r}.")


def cut(ranked: ScoredList, *, unit_scores: Scores, threshold: float | None, top_k: int) -> ScoredList:
    """Return a run's part of a ranking: the first `top_k` chunks with a unit score (n,) of at least `threshold`."""
    if threshold is not None:
        passed = unit_scores >= threshold
        ranked = ScoredList(ranked.ids[passed], ranked.scores[passed])
    return ranked.head(top_k)


def _find_reaching(scores: NDArray[np.floating[Any]], depth: int, *, band: float = 0.0) -> NDArray[np.int64]:
    """Return the indices, ascending, of the scores that are at most `band` below the depth-th greatest."""
    if depth <= 0:
        return np.empty(0, np.int64)
    if len(scores) <= SIFTED_GROUPS * depth:
        return _select(scores, depth, band)
    sifted = _sift(scores, depth, band)
    return sifted[_select(scores[sifted], depth, band)]


def _select(scores: NDArray[np.floating[Any]], depth: int, band: float) -> NDArray[np.int64]:
    """Return the same as `_find_reaching`, by looking at every score."""
    n_below = max(len(scores) - depth, 0)
    best = np.partition(scores, n_below)[n_below:] if n_below else scores
    if np.isnan(best).any():  # partition puts them last, among the best
        raise RankingError(
            "A score is not a number (NaN), so the chunks cannot be ordered. Check the encoder for "
            "vectors of zeros or infinities, and the reranker for half precision."
        )
    return np.flatnonzero(scores >= best[0] - band) if n_below else np.arange(len(scores))


def _sift(scores: NDArray[np.floating[Any]], depth: int, band: float) -> NDArray[np.int64]:
    """Return the indices of some scores, ascending, among them all that are at most `band` below the depth-th greatest.

    Selecting from all scores is the slow part of a search. So they are split into groups, and the selection is among
    the groups' maxima. At least `depth` scores reach the depth-th greatest maximum, so it is at most the depth-th
    greatest score. NaN passes, so that the final selection detects it.
    """
    count = len(scores) // SIFTED_GROUPS
    maxima = scores[: count * SIFTED_GROUPS].reshape(SIFTED_GROUPS, count).max(axis=0)
    floor = np.partition(maxima, count - depth)[count - depth]
    return np.flatnonzero(~(scores < floor - band))


TOLERANCE = 0.005  # bfloat16, the coarsest that models compute in, makes of a length of 1 at most 1.002


def find_shape_flaw(vectors: NDArray[Any], count: int, dimension: int) -> str:
    """Return what is wrong with the shape of `count` vectors of `dimension`, such as "(3, 8), not (3, 4)"; or ""."""
    shape = np.shape(vectors)
    return "" if shape == (count, dimension) else f"{shape}, not {(count, dimension)}"


def find_flaws(vectors: NDArray[np.floating[Any]], *, unit: bool = True) -> dict[int, str]:
    """Return the flaws of invalid `vectors` (n, d) by row: "not finite", "zero", "of length 0.5 instead of 1".

    The length is checked only with `unit`.
    """
    wide = vectors.astype(np.float32) if vectors.dtype.itemsize < 4 else vectors
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(wide, axis=1)
    wrong = ~np.isfinite(lengths) | (lengths == 0)
    if unit:
        wrong |= ~(np.abs(lengths - 1) <= TOLERANCE)
    return {int(row): _describe_flaw(float(lengths[row])) for row in np.flatnonzero(wrong)}


def _describe_flaw(length: float) -> str:
    if not np.isfinite(length):
        return "not finite"
    return f"of length {length:.4g} instead of 1" if length else "zero"


def rrf(lists: Sequence[ScoredList], *, k: int, depth: int) -> ScoredList:
    """Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): the sum over the lists of 1 / (k + rank), rank from 1.

    Only the first `depth` entries of each list take part. Returns their union, which the caller cuts. Scores are
    divided by the possible maximum, the first rank in every list, so they lie in (0, 1] for any k.
    """
    heads = [ranked.head(depth) for ranked in lists]
    shares = [1.0 / (k + np.arange(1, len(head) + 1)) for head in heads]
    return _fuse(heads, shares, maximum=len(lists) / (k + 1))


def weighted(lists: Sequence[ScoredList], *, weights: Sequence[float], depth: int) -> ScoredList:
    """Return the weighted sum of the scores of each list's first `depth` entries, scaled by `scale_shares`.

    `weights`, one a list, are not negative and not all 0; they are scaled to sum to 1, so scores lie in [0, 1]. A chunk
    gets 0 from a list that lacks it. A list of weight 0 takes no part: its chunks are not in the union returned.
    """
    heads = [ranked.head(depth if weight else 0) for ranked, weight in zip(lists, weights, strict=True)]
    shares = [weight * scale_shares(head.scores) for head, weight in zip(heads, weights, strict=True)]
    return _fuse(heads, shares, maximum=sum(weights))


def scale_shares(scores: Scores) -> Scores:
    """Return scores (n,) on a straight line from 1/n for the least to 1 for the best; where all are equal, each is 1.

    On that line a missing chunk, with 0, lies below the last by the mean step between neighbours.
    """
    low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
    if low >= high:
        return np.ones_like(scores)
    last = 1.0 / len(scores)
    return np.asarray(last + (1.0 - last) * ((scores - low) / (high - low)))


def _fuse(heads: Sequence[ScoredList], shares: Sequence[Scores], *, maximum: float) -> ScoredList:
    """Add up each chunk's shares in the order of the lists (float addition is not associative); ties by position.

    If only one list has entries, its order stays, even where rounding makes shares equal.
    """
    filled = [(head, share) for head, share in zip(heads, shares, strict=True) if len(head)]
    if len(filled) < 2:
        head, share = filled[0] if filled else (ScoredList.empty(), np.empty(0))
        return ScoredList(head.ids, np.minimum(share / maximum, 1.0))
    ids, slots = np.unique(np.concatenate([head.ids for head, _ in filled]), return_inverse=True)
    sums = np.bincount(slots, weights=np.concatenate([share for _, share in filled]))  # adds in the order given
    return top(np.minimum(sums / maximum, 1.0), len(ids), ids=ids)
