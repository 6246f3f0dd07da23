"""Weights of unjudged pairs: by how much each one's grade could move the differences between runs, times its doubt.

Document weights in the manner of minimal test collections (Carterette, Allan and Sitaraman, SIGIR 2006, who derive them
for AP), in expectation over the other holes: the effect of pair i on run r is what r's value of the query would be on
average if i were relevant, less what it would be if it were not. For two runs the weight is |effect on the first −
effect on the second| · the spread of the grade (√(p (1 − p)) for grades 0 and 1); for more it is the root of the sum of
squares, each pair of runs weighing as much as it is undecided. Squares, since these are variances: judging i takes
effect² · spread² from the variance of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchbench.ir.judging.fillings import PLACED, Shape, compute_reach, compute_tails
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Values


@dataclass(frozen=True, eq=False)
class ExpectedGrades:
    """Expected relevance and grade of each cell, (Q, width): 0 or 1 and the grade if it is judged."""

    chance: Values  # that it is relevant; 0 in an empty cell
    grade: Values  # its mean grade: chance · the mean of a relevant document's where it is a hole
    relevant_grade: float  # the mean grade of a relevant document; 1 for measures of binary relevance
    spread: Values  # the standard deviation of its grade, over `relevant_grade`; 0 where it is judged
    outside: Values  # (Q,): how many relevant documents are judged outside the pool

    @classmethod
    def from_chances(cls, shape: Shape, grades: Values, chances: Values, outside: Values) -> ExpectedGrades:
        """Return the expectations from the grades (Q, width), NaN in holes, and each cell's chance of relevance."""
        tails, widths = compute_tails(grades, shape.levels), shape.widths
        mean = float(tails @ widths)
        square = float(tails @ np.diff(np.append(0.0, np.cumsum(widths)) ** 2))
        is_judged = ~np.isnan(grades)
        gains = np.einsum("l,l...->...", widths, compute_reach(grades, shape.levels).astype(np.float64))
        spread = np.sqrt(np.maximum(chances * square - (chances * mean) ** 2, 0.0)) / mean
        return cls(
            chance=np.where(is_judged, grades > 0, chances),
            grade=np.where(is_judged, gains, chances * mean),
            relevant_grade=mean,
            spread=np.where(is_judged, 0.0, spread),
            outside=outside,
        )


def compute_effects(pool: Pool, shape: Shape, expected: ExpectedGrades) -> Values:
    """Return how much greater each run's value of the query is if the pair is relevant than if not, (R, Q, width)."""
    if shape.measure.name in PLACED:
        return _compute_placed_effects(pool, shape, expected)
    other_relevant = (expected.chance.sum(axis=1) + expected.outside)[:, None] - expected.chance
    without = _interpolate(shape, other_relevant) * expected.relevant_grade
    with_it = _interpolate(shape, other_relevant + 1) * expected.relevant_grade
    gain = shape.discounts * expected.relevant_grade
    expected_gains = shape.discounts * expected.grade
    other_gains = expected_gains.sum(axis=2, keepdims=True) - expected_gains
    if shape.ideal is None:
        return gain
    return _share(other_gains + gain, with_it) - _share(other_gains, without)


def _interpolate(shape: Shape, counts: Values) -> Values:
    """Return the ideal's sum over a fractional count, by linear interpolation between its neighbours."""
    low = np.floor(counts)
    below = shape.sum_ideal(low)
    return below + (counts - low) * (shape.sum_ideal(low + 1) - below)


def _compute_placed_effects(pool: Pool, shape: Shape, expected: ExpectedGrades) -> Values:
    result = np.zeros(pool.ranks.shape)
    for run, ranks in enumerate(pool.ranks):
        order = np.argsort(ranks, axis=1, kind="stable")
        within = np.take_along_axis(shape.discounts[run], order, axis=1) > 0
        shares = np.where(within, 1.0 / np.where(within, np.take_along_axis(ranks, order, axis=1), 1.0), 0.0)
        chance = np.take_along_axis(expected.chance, order, axis=1) * within
        if shape.measure.name == "AP":
            base = expected.chance.sum(axis=1) + expected.outside
            full_chance = np.take_along_axis(expected.chance, order, axis=1)
            effect = _compute_ap_effects(chance, shares, full_chance, base[:, None])
        else:
            worth = shares if shape.measure.name == "RR" else within.astype(np.float64)
            effect = _compute_first_effects(chance, worth)
        np.put_along_axis(result[run], order, effect, axis=1)
    return result


def _compute_ap_effects(chance: Values, shares: Values, full_chance: Values, base: Values) -> Values:
    """Return the effects on AP (Carterette, Allan, Sitaraman): a document adds its precision and lifts those below."""
    above = np.cumsum(chance, axis=1) - chance
    below = np.flip(np.cumsum(np.flip(chance * shares, axis=1), axis=1), axis=1) - chance * shares
    lift = (1 + above) * shares + below * (shares > 0)
    total = (chance * shares * (1 + above)).sum(axis=1, keepdims=True)
    other_sum = total - chance * lift
    return _share(other_sum + lift, base - full_chance + 1) - _share(other_sum, base - full_chance)


def _compute_first_effects(chance: Values, worth: Values) -> Values:
    """Return the effects on RR and Success: a document counts if none above is relevant, and replaces those below."""
    none = np.cumprod(1 - chance, axis=1)
    above = np.concatenate([np.ones((len(chance), 1)), none[:, :-1]], axis=1)
    below = np.zeros_like(chance)
    for index in range(chance.shape[1] - 2, -1, -1):
        after = index + 1
        below[:, index] = chance[:, after] * worth[:, after] + (1 - chance[:, after]) * below[:, after]
    return above * (worth - below) * (worth > 0)


def squared(effect: Values, importance: Values) -> Values:
    """Return Σ over pairs of runs of importance · (effect on the first − effect on the second)², of effects (R, …).

    `importance` (R, R) is symmetric with a diagonal of zeros.
    """
    laplacian = np.diag(importance.sum(axis=1)) - importance
    flat = effect.reshape(len(effect), -1)
    return np.asarray(np.maximum(((laplacian @ flat) * flat).sum(axis=0), 0.0).reshape(effect.shape[1:]), np.float64)


def _share(amount: Values, total: Values) -> Values:
    return np.divide(amount, total, out=np.zeros(np.broadcast(amount, total).shape), where=total > 1e-12)
