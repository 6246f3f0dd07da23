"""The measures that BenchBench computes itself: each a function of graded rankings and a cutoff, (q,) values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.measures.graded import GradedRankings, Values


def _precision(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(until(graded.hits, cutoff), cutoff or 0)


def _recall(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(until(graded.hits, cutoff), graded.n_relevant)


def _ndcg(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(until(graded.dcg, cutoff), until(graded.ideal_dcg, cutoff))


def _average_precision(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(until(graded.precisions, cutoff), graded.n_relevant)


def _reciprocal_rank(graded: GradedRankings, cutoff: int | None) -> Values:
    return np.where(until(graded.hits, cutoff) > 0, 1.0 / graded.first_relevant, 0.0)


def _success(graded: GradedRankings, cutoff: int | None) -> Values:
    return (until(graded.hits, cutoff) > 0).astype(np.float64)


def _judged(graded: GradedRankings, cutoff: int | None) -> Values:
    """Divides by the documents there are: a short ranking is not an unjudged one."""
    seen = graded.lengths if cutoff is None else np.minimum(graded.lengths, cutoff)
    return _ratio(until(graded.judged, cutoff), seen)


def _hits(graded: GradedRankings, cutoff: int | None) -> Values:
    return until(graded.hits, cutoff).copy()


def _first_relevant(graded: GradedRankings, cutoff: int | None) -> Values:
    """NaN where there is none: no number says "nowhere" without posing as a rank."""
    return np.where(until(graded.hits, cutoff) > 0, graded.first_relevant, np.nan)


FORMULAS: dict[str, Callable[[GradedRankings, int | None], Values]] = {
    "P": _precision,
    "R": _recall,
    "nDCG": _ndcg,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "Success": _success,
    "Judged": _judged,
    "Hits": _hits,
    "FirstRelevant": _first_relevant,
}
NEED_CUTOFF = frozenset({"P", "R", "Success"})


def until(running: Values, cutoff: int | None) -> Values:
    """A running sum (q, depth ≥ 1) read at the cutoff, or at the last rank where there is none or it lies beyond."""
    if cutoff == 0:
        return np.zeros(running.shape[:-1])
    depth = running.shape[-1]
    return running[..., (depth if cutoff is None else min(cutoff, depth)) - 1]


def _ratio(part: Values, whole: Values | NDArray[np.int64] | int) -> Values:
    return np.divide(part, whole, out=np.zeros_like(part), where=np.greater(whole, 0))
