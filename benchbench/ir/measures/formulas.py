"""The measures that BenchBench computes itself: each a function of graded rankings and a cutoff, (q,) values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.measures.graded import GradedRankings, Values


def _reciprocal_rank(graded: GradedRankings, cutoff: int | None) -> Values:
    return np.where(graded.until(graded.sums.hits, cutoff) > 0, 1.0 / graded.sums.first_relevant, 0.0)


def _judged(graded: GradedRankings, cutoff: int | None) -> Values:
    """Divides by the documents there are: a short ranking is not an unjudged one."""
    seen = graded.lengths if cutoff is None else np.minimum(graded.lengths, cutoff)
    return _ratio(graded.until(graded.sums.judged, cutoff), seen)


def _first_relevant(graded: GradedRankings, cutoff: int | None) -> Values:
    """NaN where there is none: no number says "nowhere" without posing as a rank."""
    return np.where(graded.until(graded.sums.hits, cutoff) > 0, graded.sums.first_relevant, np.nan)


FORMULAS: dict[str, Callable[[GradedRankings, int | None], Values]] = {
    "P": lambda graded, cutoff: _ratio(graded.until(graded.sums.hits, cutoff), cutoff or 0),
    "R": lambda graded, cutoff: _ratio(graded.until(graded.sums.hits, cutoff), graded.n_relevant),
    "nDCG": lambda graded, cutoff: _ratio(graded.until(graded.sums.dcg, cutoff), _ideal(graded, cutoff)),
    "AP": lambda graded, cutoff: _ratio(graded.until(graded.sums.precisions, cutoff), graded.n_relevant),
    "RR": _reciprocal_rank,
    "Success": lambda graded, cutoff: (graded.until(graded.sums.hits, cutoff) > 0).astype(np.float64),
    "Judged": _judged,
    "Hits": lambda graded, cutoff: graded.until(graded.sums.hits, cutoff),
    "FirstRelevant": _first_relevant,
}
NEED_CUTOFF = frozenset({"P", "R", "Success"})


def _ideal(graded: GradedRankings, cutoff: int | None) -> Values:
    """The DCG of the ideal ranking at the cutoff, or of all of it where there is none or it lies beyond."""
    if cutoff == 0:
        return np.zeros(len(graded.lengths))
    width = graded.ideal_dcg.shape[-1]
    return graded.ideal_dcg[:, (width if cutoff is None else min(cutoff, width)) - 1]


def _ratio(part: Values, whole: Values | NDArray[np.int64] | int) -> Values:
    return np.divide(part, whole, out=np.zeros_like(part), where=np.greater(whole, 0))
