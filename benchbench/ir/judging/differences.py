"""Bounds of the differences between runs: least and greatest over every possible filling of a query's holes.

A hole is a pair of the pool without a grade; it gets any grade from 0 to the highest of the scale. Two runs share the
truth, so the bounds of their difference are narrower than those of their values (`benchbench.ir.bounds`): a hole that
both rank alike moves neither. The least of a sum over queries is the sum of the leasts, since each query is filled by
itself.

Exact for P, Hits, R, nDCG, RR and Success. For AP exact if either run ranks at most `MAX_ENUMERATED` holes of a
query, since every filling is tried. With more, the bounds hold but may be wider than necessary: the difference of two
AP is quadratic in the relevant documents, and no quick way to its extremes is known to us.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.bounds import compute_bounds
from benchbench.ir.judging.fillings import Shape, compute_placed, compute_reach
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import GradedRankings, Values
from benchbench.ir.measures.graded import share

MAX_ENUMERATED = 10
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True, eq=False)
class OpenQuery:
    """One query of a pool with what is known of it. Arrays are over its holes (h,) or its graded pairs."""

    ranks: Values  # (R, h): of each hole
    discounts: Values  # (R, h)
    graded_gain: Values  # (R,): the sum of discounted gains of what is graded
    numbers: Values  # (levels,): how many graded documents, inside the pool or not, reach each level
    row: Pool  # the query alone, as a pool of one
    grades: Values  # (width,): NaN in holes
    outside: Values  # (levels, 1)

    @classmethod
    def from_pool(cls, pool: Pool, shape: Shape, query: int, grades: Values, outside: Values) -> OpenQuery:
        """Return the open query from `grades` (width,) of its cells and `outside` (levels,) of `count_outside`."""
        holes = pool.has_document[query] & np.isnan(grades)
        reach = compute_reach(grades, shape.levels)
        gains = shape.widths @ reach
        return cls(
            ranks=pool.ranks[:, query, holes],
            discounts=shape.discounts[:, query, holes],
            graded_gain=shape.discounts[:, query] @ gains,
            numbers=reach.sum(axis=1) + outside,
            row=Pool(
                (pool.documents[query],), pool.ranks[:, query : query + 1], pool.answered[query : query + 1], None
            ),
            grades=grades,
            outside=outside[:, None],
        )


def bound_differences(shape: Shape, query: OpenQuery, pairs: Pairs) -> tuple[Values, Values]:
    """Return the least and greatest of first − second on one query, both (pairs,)."""
    if shape.measure.name == "AP":
        return _bound_average_precision(shape, query, pairs)
    if shape.measure.name in ("RR", "Success"):
        upper, lower = _bound_first_relevant(shape, query, pairs), _bound_first_relevant(shape, query, pairs[::-1])
    else:
        upper, lower = _bound_linear(shape, query, pairs), _bound_linear(shape, query, pairs[::-1])
    return -lower, upper


def _bound_linear(shape: Shape, query: OpenQuery, pairs: Pairs) -> Values:
    """Return the greatest difference of a measure that is a weighted sum of gains over an ideal that both share.

    Where the numerator can be made positive, by Dinkelbach's method as in `bounds._maximize_ndcg`: for a ratio λ ≥ 0
    the numerator − λ · ideal adds up over levels, and each level is reached by the documents of the greatest weights,
    as many as make its part greatest. Where it cannot, λ < 0, and numerator − λ · ideal is convex in the grades: each
    is 0 or the highest, and of as many the ones of the greatest weights are.
    """
    first, second = pairs
    weights = -np.sort(query.discounts[second] - query.discounts[first], axis=1)  # falling
    difference = query.graded_gain[first] - query.graded_gain[second]
    gains = np.concatenate([np.zeros((len(first), 1)), np.cumsum(weights, axis=1)], axis=1)
    counts = np.arange(gains.shape[1], dtype=np.float64)
    widths = shape.widths
    ideals = np.stack([shape.sum_ideal(number + counts) for number in query.numbers])  # (levels, h + 1)
    if shape.ideal is None:
        return np.asarray(difference + gains.max(axis=1) * widths.sum(), np.float64)
    ratio: Values = share(difference[:, None] + gains * widths.sum(), widths @ ideals).max(axis=1)
    rising = np.flatnonzero(ratio > 0)
    while len(rising):
        numerator, ideal = difference[rising].copy(), np.zeros(len(rising))
        for width, level_ideal in zip(widths, ideals, strict=True):
            best = (gains[rising] - ratio[rising, None] * level_ideal).argmax(axis=1)
            numerator += width * gains[rising, best]
            ideal += width * level_ideal[best]
        raised = share(numerator, ideal)
        grown = raised > ratio[rising] + 1e-12
        ratio[rising] = np.maximum(ratio[rising], raised)
        rising = rising[grown]
    return ratio


def _bound_first_relevant(shape: Shape, query: OpenQuery, pairs: Pairs) -> Values:
    """Return the greatest difference of a measure of the first relevant document.

    A filling's value is the greatest over its relevant documents. The best relevant document of the first run gives its
    value, and further ones can only help the second run. So at most one hole is relevant.
    """
    first, second = pairs
    shares = query.discounts / query.ranks if shape.measure.name == "RR" else query.discounts
    ranked = query.row.ranks[:, 0]
    k = np.inf if shape.measure.cutoff is None else shape.measure.cutoff
    values = (1.0 / ranked if shape.measure.name == "RR" else 1.0) * (ranked <= k) * (query.grades > 0)
    current = values.max(axis=1, initial=0.0)
    none: Values = current[first] - current[second]
    if not query.discounts.shape[1]:
        return none
    with_it = np.maximum(current[first, None], shares[first]) - np.maximum(current[second, None], shares[second])
    return np.asarray(np.maximum(none, with_it.max(axis=1)), np.float64)


def _bound_average_precision(shape: Shape, query: OpenQuery, pairs: Pairs) -> tuple[Values, Values]:
    first, second = pairs
    seen = (query.discounts > 0).any(axis=0)
    holes = np.flatnonzero(query.row.has_document[0] & np.isnan(query.grades))
    if seen.sum() <= MAX_ENUMERATED:
        return _enumerate_fillings(shape, query, holes[seen], int((~seen).sum()), pairs)
    low, high = _bound_runs(shape, query)
    return low[first] - high[second], high[first] - low[second]


def _enumerate_fillings(
    shape: Shape, query: OpenQuery, holes: NDArray[np.intp], unseen: int, pairs: Pairs
) -> tuple[Values, Values]:
    """Try every filling of the holes that a run ranks, with none and with all of those that only enlarge the base.

    For a given filling of the others a difference is a numerator over a base, so an end of the base is extreme.
    """
    patterns = np.arange(2 ** len(holes))[None] >> np.arange(len(holes))[:, None] & 1 == 1
    relevant = np.repeat((query.grades > 0)[:, None], patterns.shape[1], axis=1)
    relevant[holes] = patterns
    first, second = pairs
    ends = []
    for more in {0, unseen}:
        values = compute_placed(query.row, shape.measure, relevant[None], query.outside[0] + more)[0]
        drawn = values[first] - values[second]
        ends.append((drawn.min(axis=1), drawn.max(axis=1)))
    return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)


def _bound_runs(shape: Shape, query: OpenQuery) -> tuple[Values, Values]:
    """Return the least and greatest AP of each run, both (R,), over all fillings of the pool.

    Works like `bounds._average_precision`. Holes that a run does not rank enlarge the base where that lowers the AP.
    """
    ranks = query.row.ranks[:, 0]
    order = np.argsort(ranks, axis=1, kind="stable")
    is_ranked = np.isfinite(np.take_along_axis(ranks, order, axis=1))
    grades = np.where(is_ranked, query.grades[order], np.nan)
    base = int((query.grades > 0).sum() + query.outside[0, 0])
    ideal = np.ones((len(ranks), max(base, 1))) * (base > 0)
    graded = GradedRankings(
        grades, is_ranked.sum(axis=1).astype(np.int64), ideal, np.full(len(ranks), base), [{} for _ in ranks]
    )
    low, high = compute_bounds(shape.measure, graded, 1.0)
    within = is_ranked if shape.measure.cutoff is None else is_ranked[:, : shape.measure.cutoff]
    ranked_holes = (within & np.isnan(grades[:, : within.shape[1]])).sum(axis=1)
    total = (np.isnan(query.grades) & query.row.has_document[0]).sum()
    return low * share(np.full(len(ranks), float(base)), base + (total - ranked_holes).astype(np.float64)), high
