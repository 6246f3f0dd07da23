"""Allowance for skewed differences, for few of them, and for yes-or-no measures: intervals, and the check of a test.

Sign flips and Student's t take a mean of n differences for symmetric or normal. Between similar runs most differences
are 0 and a few are large: a sample that misses those looks certain. Two things allow for that.

*Unseen queries.* Two queries are added to every sample, one that the first run wins by `UNSEEN` of the measure's range
and one that it loses by as much. m' is the mean with them, and se' its standard error, the root of
(Σu²(d − m')² + Σ(±UNSEEN − m')²) / ((n + 1)(n + 2)), u the weights scaled to the mean 1. |m'| / se' is |m| / error with
error = se'(n + 2) / n.

*The bootstrap-t* (Efron and Tibshirani 1993, chapter 12), symmetric as in Hall (1988): the |t| that resamples of this
pair exceed as rarely as a normal pair exceeds the critical value of the family.

A pair is clear if |m| / error exceeds the family's critical value and Student's quantile, and |t| the bootstrap's
bound. Its interval is m ± the greatest of the three · error. If too many resamples have no variance, so that the
bootstrap has no bound, or if no query differs, the unseen queries differ by √½ of the range and the bound is left out;
intervals of yes and no have them too (Agresti and Min 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.statistics.max_t import Family
from benchbench.ir.statistics.resampling import BLOCK, SAME, Interval, Values, cut_blocks, draw_counts

UNSEEN = 0.1  # of the range of a measure
SPARSE = 0.5**0.5  # the same for yes and no, and where the bootstrap has no bound
ROUNDING = 1e-5  # of a share of squares in float32
FEWEST = 20  # queries for an interval; with fewer those of ten pairs hold together in less than 92 %
PAIRS_AT_ONCE = 128
MOST_RESAMPLES = 4_000  # of the bootstrap-t, which takes longest


@dataclass(frozen=True, slots=True)
class Estimates:
    """Differences of p pairs, their errors with unseen queries, and by how many of these they may be wrong, (p,)."""

    n: int
    unit: float  # the range of the measure
    is_bounded: bool  # whether values are from 0 to `unit`, so that no difference is greater
    student: float  # the bound of a pair alone whose differences are normal
    critical: float | None  # of the family; None: nothing can be significant
    has_intervals: bool
    is_binary: NDArray[np.bool_]  # whether every query that differs does so by the whole range, as for yes and no
    difference: Values
    error: Values
    single: Values  # the bound of the pair alone
    bound: Values  # the bound of the family
    bar: Values  # what |difference| has to exceed to be significant

    @classmethod
    def from_values(
        cls,
        values: Values,
        family: Family,
        *,
        critical: float | None,
        alpha: float,
        resamples: int,
        seed: int,
        weights: Values | None = None,
    ) -> Estimates:
        """Return the estimates of `values` (runs, n). The range of the measure is 1, or the greatest value above 1."""
        from scipy.special import stdtr, stdtrit

        unit, n = max(1.0, float(np.abs(values).max())), family.n
        freedom = max(family.effective - 1, SAME)
        student = float(-stdtrit(freedom, alpha / 2))
        level = alpha if critical is None else min(alpha, 2 * float(stdtr(freedom, -critical)))
        normal, is_binary = max(student, critical or 0.0), (family.step >= unit - SAME) & (weights is None)
        drawn = bound_t(values, family, (alpha, level), resamples=resamples, seed=seed, weights=weights)
        is_sparse = np.isinf(drawn[1]) | ~family.differs
        drawn[:, is_sparse] = 0.0
        error = add_unseen(family, np.where(is_sparse | is_binary, SPARSE, UNSEEN) * unit)
        by_flips = normal * add_unseen(family, np.where(is_sparse, SPARSE, UNSEEN) * unit)
        by_draws = drawn[1] * family.deviation / math.sqrt(n)
        return cls(
            n,
            unit,
            bool(values.min() >= 0),
            student,
            critical,
            n >= FEWEST and (critical is not None or not family.differs.any()),
            is_binary,
            family.difference,
            error,
            np.maximum(drawn[0], student),
            np.maximum(drawn[1], normal),
            np.maximum(by_flips, by_draws),
        )

    def is_clear(self) -> NDArray[np.bool_]:
        """Return whether each difference is greater than `bar`, or must be yes or no.

        Flips are an exact test of "no more wins than losses", and no query can differ by more than the range.
        """
        return np.asarray(self.is_binary | (np.abs(self.difference) > self.bar), np.bool_)

    def find_ends(self, bound: Values, sign: Values | None = None) -> Values:
        """Return the ends of the intervals with a bound, (p, 2); with a `sign` they exclude 0 if it is not 0."""
        half = bound * self.error
        low, high = self.difference - half, self.difference + half
        if sign is not None:
            tiny = np.finfo(np.float64).tiny
            low = np.where(sign > 0, np.maximum(low, tiny), np.where(sign < 0, low, np.minimum(low, 0.0)))
            high = np.where(sign < 0, np.minimum(high, -tiny), np.where(sign > 0, high, np.maximum(high, 0.0)))
        ends = np.stack([low, high], axis=1)
        return np.clip(ends, -self.unit, self.unit) if self.is_bounded else ends

    def find_equal(self) -> tuple[float, float, float | None]:
        """Return the error of two runs with equal values, and half the widths of their intervals."""
        error = self.unit * math.sqrt((self.n + 2) / (self.n + 1)) / self.n
        together = error * max(self.student, self.critical or 0.0)
        return error, error * self.student, together if self.has_intervals else None

    def find_detectable(self, family: Family, power: float) -> Values:
        """Return the true differences that are found with a power, (p,).

        For yes and no, more wins make a greater mean and also a greater variance: with the share l of the rarer of wins
        and losses, a mean of δ ranges has the mean square 2l + δ. Its flips are discrete, which costs one query.
        """
        z, n = NormalDist().inv_cdf(power), self.n
        critical = max(self.student, self.critical or 0.0)
        greater = self.bar + z * self.error
        flips = critical * math.sqrt(n / (n - 1 + critical**2))
        both, share = 2 * np.minimum(family.wins, family.losses) / n, np.zeros_like(greater)
        for _ in range(40):  # each halves the error at least
            square = both + share
            share = (flips * np.sqrt(n * square) + 1 + z * np.sqrt(n * np.maximum(square - share**2, 0.0))) / n
        return np.where(self.is_binary, share * self.unit, greater)


def find_intervals(
    rows: Values, *, alpha: float, resamples: int, seed: int, weights: Values | None = None
) -> list[Interval]:
    """Return the interval of the mean of each row of differences (rows, n) by itself; `weights` have the mean 1."""
    values = np.vstack([rows, np.zeros(rows.shape[1])])
    family = Family.from_values(values, len(rows), weights)
    estimates = Estimates.from_values(
        values, family, critical=None, alpha=alpha, resamples=resamples, seed=seed, weights=weights
    )
    return [Interval(*ends) for ends in estimates.find_ends(estimates.single).tolist()]


def add_unseen(family: Family, unseen: Values) -> Values:
    """Return the standard errors of all pairs with two queries added that differ by ± `unseen`, (p,)."""
    n = family.n
    moved = 2 * family.difference / (n + 2)  # from the mean of n queries to that of n + 2
    squares = (n - 1) * family.deviation**2 + 2 * moved * family.skew + moved**2 * (n**2 / family.effective)
    squares += 2 * (unseen**2 + (family.difference - moved) ** 2)
    return np.asarray(np.sqrt(squares * (n + 2) / (n + 1)) / n, np.float64)


def bound_t(
    values: Values,
    family: Family,
    levels: tuple[float, float],
    *,
    resamples: int,
    seed: int,
    weights: Values | None = None,
) -> Values:
    """Return the |t| of each pair that resamples exceed at each level, (2, p); infinite where they have no variance.

    With e the differences less their mean, t rises with (Σe)² / nΣe². A pair without variance has the bound 0.
    """
    used = min(resamples, MOST_RESAMPLES)
    at = [used - max(1, int(level * (used + 1) + SAME)) for level in levels]
    bounds = np.zeros((2, len(family.first)))
    for pairs in cut_blocks(len(family.first), BLOCK // PAIRS_AT_ONCE):
        e = values[family.first[pairs]] - values[family.second[pairs]] - family.difference[pairs, None]
        deviation = family.deviation[pairs, None]
        e = np.divide(e, deviation, out=np.zeros_like(e), where=deviation > 0)
        scaled = (e if weights is None else e * weights).astype(np.float32)
        shares = _draw_shares(scaled, resamples, used, seed)
        shares.sort(axis=1)
        chosen = shares[:, at].astype(np.float64).T
        with np.errstate(divide="ignore"):
            bounds[:, pairs] = np.sqrt((family.n - 1) * chosen / np.where(chosen > 1 - ROUNDING, 0.0, 1 - chosen))
    return bounds


def _draw_shares(e: NDArray[np.float32], resamples: int, used: int, seed: int) -> NDArray[np.float32]:
    """Return (Σe)² / nΣe² of each row of `e` (rows, n) over the first of the resamples, (rows, used); 0 for 0 / 0."""
    n = e.shape[1]
    shares, both = np.zeros((len(e), used), np.float32), np.concatenate([e, e * e])
    for block, drawn in zip(cut_blocks(used, n), draw_counts(n, resamples, seed), strict=False):
        sums, squares = np.split(both @ drawn[: block.stop - block.start].T.astype(np.float32), 2)
        sums *= sums
        squares *= n
        np.divide(sums, squares, out=shares[:, block], where=squares > 0)
    return shares


def find_bars(errors: Values, n: int, critical: float, *, alpha: float = 0.05, unseen: float = UNSEEN) -> Values:
    """Return what a |difference| of n queries has to exceed for `critical`, Student's quantile and unseen queries.

    `errors` are standard errors of any shape. It is `Estimates.bar` without the bootstrap-t, for many values at once.
    """
    from scipy.special import stdtrit

    squares = max(critical, float(-stdtrit(n - 1, alpha / 2))) ** 2
    left = n * (n * (n + 1) - 2 * squares)
    if not 0 < left < np.inf:
        return np.full_like(errors, np.inf)
    return np.asarray(np.sqrt(squares * (n * (n - 1) * errors**2 + 2 * unseen**2) * (n + 2) / left), np.float64)


def bound_by_score(wins: int, losses: int, n: int, z: float) -> float:
    """Return the least difference of two paired shares, (wins − losses) / n if observed, that a score test accepts.

    The lower end of Tango's interval (Statistics in Medicine 17, 1998, 891-908): the test's variance is that of the
    likeliest shares with this difference, so it is right where few queries differ, or none.
    """
    low, high = -1.0, (wins - losses) / n
    for _ in range(50):
        share = (low + high) / 2
        b = -wins - losses + (2 * n - wins + losses) * share
        lost = (math.sqrt(max(b * b + 8 * n * losses * share * (1 - share), 0.0)) - b) / (4 * n)
        variance = n * max(2 * lost + share * (1 - share), 0.0)
        is_rejected = wins - losses - n * share > z * math.sqrt(variance)
        low, high = (share, high) if is_rejected else (low, share)
    return low


def foresee_detectable(deviation: float, queries: int, pairs: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return `Pair.detectable` before there are values, for differences with this standard deviation.

    The critical value is Bonferroni's, an upper bound of that of correlated runs.
    """
    normal = NormalDist()
    critical = normal.inv_cdf(1 - alpha / (2 * pairs))
    return (critical + normal.inv_cdf(power)) * deviation / math.sqrt(queries)
