"""Bounds of a measure: its least and greatest value once the unjudged documents of a ranking are judged.

Judging a document adds it to the truth. A document that turns out relevant therefore counts in the recall base and the
ideal as well as in the ranking, and the value may fall. A run whose one relevant document is first has an AP of 1, and
less once a second is found at rank 10. The bounds are exact under these outcomes: each unjudged document of the first k
ranks (of the whole ranking, if the measure has no cutoff) gets any grade from 0 to the highest of the scale, and
documents that were not retrieved keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.measures import GradedRankings, Measure, Values, evaluate
from benchbench.ir.measures.graded import share

Bounds = tuple[Values, Values]


def compute_bounds(measure: Measure, graded: GradedRankings, top_grade: float) -> Bounds:
    """Return the least and the greatest value of each query, both (q,); NaN for a measure of the library.

    `top_grade` is the highest grade that a document can get; no grade of the truths is above it. Linear in the depth,
    for nDCG times the number of distinct grades and of a few rounds.
    """
    bound = BOUNDS.get(measure.name)
    if bound is None:
        unknown = np.full(len(graded.lengths), np.nan)
        return unknown, unknown
    return bound(_OpenRankings.from_graded(graded, measure, top_grade))


@dataclass(frozen=True, slots=True, eq=False)
class _OpenRankings:
    """The unjudged documents of the first k ranks of q rankings, and the known values."""

    graded: GradedRankings
    measure: Measure
    value: Values  # (q,): with every unjudged document not relevant
    unjudged: NDArray[np.bool_]  # (q, depth): whether there is an unjudged document at each rank, among the first k
    top_grade: float

    @classmethod
    def from_graded(cls, graded: GradedRankings, measure: Measure, top_grade: float) -> _OpenRankings:
        if measure.cutoff is not None:  # nothing below it matters
            graded = replace(graded, grades=graded.grades[:, : max(measure.cutoff, 1)])
        seen = graded.ranks <= graded.lengths[:, None]
        if measure.cutoff == 0:
            seen[:] = False
        return cls(graded, measure, evaluate([measure], graded)[0], seen & np.isnan(graded.grades), top_grade)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """Return whether there is a relevant document at each rank, among the first k, (q, depth)."""
        return self.graded.relevant & (self.measure.cutoff is None or self.graded.ranks <= self.measure.cutoff)

    @property
    def count(self) -> Values:
        """Return the number of unjudged documents, (q,)."""
        return np.asarray(self.unjudged.sum(axis=-1, dtype=np.float64), np.float64)

    @property
    def first(self) -> Values:
        """Return the rank of the first unjudged document, (q,); infinite if all are judged."""
        return np.where(self.unjudged.any(axis=-1), self.unjudged.argmax(axis=-1) + 1.0, np.inf)

    def count_down(self) -> Values:
        """Return the number of unjudged documents at each rank or above, (q, depth)."""
        return np.cumsum(self.unjudged, axis=-1, dtype=np.float64)

    def count_up(self) -> Values:
        """Return the number of unjudged documents at each rank or below, (q, depth)."""
        return _sum_up(self.unjudged.astype(np.float64))


def _first_relevant(open_: _OpenRankings) -> Bounds:
    """Return the bounds of the rank; no greatest if it may stay without one. Documents found above only lower it."""
    lower = np.fmin(open_.value, open_.first)
    return np.where(np.isinf(lower), np.nan, lower), open_.value


def _recall(open_: _OpenRankings) -> Bounds:
    """Return the bounds of recall. (hits + x) / (relevant + x) grows with x."""
    relevant, base = open_.relevant.sum(axis=-1) + open_.count, open_.graded.n_relevant + open_.count
    return open_.value, np.maximum(open_.value, share(relevant, base))


def _average_precision(open_: _OpenRankings) -> Bounds:
    """Return the bounds of AP by trying each number x of documents that turn out relevant.

    For a given x the base is fixed. The sum of precisions is greatest for the topmost x and least for the deepest x.
    """
    graded, unjudged = open_.graded, open_.unjudged
    hits = np.cumsum(open_.relevant, axis=-1, dtype=np.float64)
    shares = 1.0 / graded.ranks
    lifted = _sum_up(np.where(open_.relevant, shares, 0.0))  # what one more document above adds to those below
    base, total = graded.n_relevant[:, None], (open_.value * graded.n_relevant)[:, None]
    down, up = open_.count_down(), open_.count_up()
    topmost = np.cumsum(np.where(unjudged, (hits + down) * shares + lifted, 0.0), axis=-1)
    own_and_below = _sum_up(np.where(unjudged, shares, 0.0))  # its own place, and the lift of those added before
    deepest = _sum_up(np.where(unjudged, hits * shares + lifted + own_and_below, 0.0))
    upper = np.where(unjudged, share(total + topmost, base + down), -np.inf).max(axis=-1)
    lower = np.where(unjudged, share(total + deepest, base + up), np.inf).min(axis=-1)
    return np.minimum(open_.value, lower), np.maximum(open_.value, upper)


def _minimize_ndcg(open_: _OpenRankings) -> Values:
    """Return the least nDCG by trying each number of deepest documents at the highest grade.

    For a given ratio λ, DCG − λ · ideal is concave in the grades, because the ideal, a maximum over orders, is convex.
    So it is least if each grade is 0 or the highest, and for a given number, if the deepest have the highest.
    """
    levels = _Levels.from_rankings(open_)
    gained = _sum_up(np.where(open_.unjudged, levels.discounts, 0.0)) * open_.top_grade
    count = open_.count_up()
    ideal = np.zeros_like(count)
    for width, number in levels.iterate():
        ideal += width * levels.ideal(number + count)
    ratios = np.where(open_.unjudged, share(levels.dcg + gained, ideal), np.inf)
    return np.asarray(np.minimum(open_.value, ratios.min(axis=-1)), np.float64)


def _maximize_ndcg(open_: _OpenRankings) -> Values:
    """Return the greatest nDCG by Dinkelbach's method.

    λ becomes the ratio DCG / ideal of the grades that maximise DCG − λ · ideal, until it no longer changes. A grade is
    a sum of steps, from each grade of the scale to the next. DCG and ideal are sums over the steps. At each step the
    topmost x documents take it, for the x that maximises that step's part. A higher step never takes more documents
    than a lower one, because fewer have it already and the ideal grows at an earlier rank. So the steps form grades.
    """
    levels, ratio = _Levels.from_rankings(open_), open_.value
    gains = np.cumsum(np.where(open_.unjudged, levels.discounts, 0.0), axis=-1)
    count = open_.count_down()
    while True:
        dcg, ideal = levels.dcg[:, 0], np.zeros_like(ratio)
        for width, number in levels.iterate():
            none = levels.ideal(number)
            values = np.where(open_.unjudged, gains - ratio[:, None] * (levels.ideal(number + count) - none), -np.inf)
            best = values.argmax(axis=-1)[:, None]
            some = np.take_along_axis(values, best, axis=-1) > 0
            gain = np.where(some, np.take_along_axis(gains, best, axis=-1), 0.0)
            added = np.where(some, np.take_along_axis(count, best, axis=-1), 0.0)
            dcg = dcg + width * gain[:, 0]
            ideal = ideal + width * levels.ideal(number + added)[:, 0]
        raised = np.maximum(ratio, share(dcg, ideal))
        if np.allclose(raised, ratio, rtol=0, atol=1e-12):
            return raised
        ratio = raised


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """The steps between the grades of the scale: DCG and ideal are sums over them."""

    widths: list[float]
    numbers: list[Values]  # per step, (q, 1): how many judged documents reach it
    discounts: Values  # (depth,): 1 / log2(rank + 1)
    summed: Values  # (n + 1,): the sum of the first 0, 1, 2, … discounts, no further than the cutoff
    dcg: Values  # (q, 1): of what is known

    @classmethod
    def from_rankings(cls, open_: _OpenRankings) -> _Levels:
        graded = open_.graded
        grades = np.unique(np.append(graded.ideal[graded.ideal > 0], open_.top_grade))
        width = graded.ideal.shape[-1] + graded.grades.shape[-1]
        discounts = 1.0 / np.log2(np.arange(2.0, width + 2.0))
        cut = np.where(
            np.arange(width) < (width if open_.measure.cutoff is None else open_.measure.cutoff), discounts, 0.0
        )
        gains = np.where(open_.relevant, graded.grades, 0.0)
        discounts = discounts[: graded.grades.shape[-1]]
        return cls(
            widths=np.diff(grades, prepend=0.0).tolist(),
            numbers=[(graded.ideal >= grade).sum(axis=-1, keepdims=True).astype(np.float64) for grade in grades],
            discounts=discounts,
            summed=np.append(0.0, np.cumsum(cut)),
            dcg=(gains * discounts).sum(axis=-1, keepdims=True),
        )

    def iterate(self) -> zip[tuple[float, Values]]:
        return zip(self.widths, self.numbers, strict=True)

    def ideal(self, numbers: Values) -> Values:
        """Return what a step of width 1 adds to the ideal if the given numbers of documents reach it."""
        return self.summed[numbers.astype(np.int64)]


BOUNDS: dict[str, Callable[[_OpenRankings], Bounds]] = {
    "P": lambda o: (o.value, o.value + o.count / max(o.measure.cutoff or 0, 1)),
    "R": _recall,
    "nDCG": lambda o: (_minimize_ndcg(o), _maximize_ndcg(o)),
    "AP": _average_precision,
    "RR": lambda o: (o.value, np.maximum(o.value, 1.0 / o.first)),
    "Success": lambda o: (o.value, np.maximum(o.value, o.count > 0)),
    "Judged": lambda o: (o.value, o.value),
    "Hits": lambda o: (o.value, o.value + o.count),
    "FirstRelevant": _first_relevant,
}


def _sum_up(values: Values) -> Values:
    """Return running sums from the last rank upwards."""
    return np.flip(np.cumsum(np.flip(values, axis=-1), axis=-1), axis=-1)
