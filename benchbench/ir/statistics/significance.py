"""Significance of the difference between two runs: whether it exceeds chance, and how large it may be.

All runs of a comparison are measured on the same queries, so runs are compared query by query. For a pair of runs let
d be the n differences of their values, m their mean and se = sd(d) / √n. The test asks: if neither run were better,
each d could as well have had the other sign, so how often does |t| = |m| / se come out as large when signs are tossed?
One toss per query serves all pairs of the family at once, which keeps their correlation, and the greatest |t| of the
family is what an observed |t| is held against: the single-step max-|t| procedure of Westfall and Young, Resampling-
Based Multiple Testing (1993). The chance of even one false difference in the whole family is at most alpha.

With weights w of the queries, u = w / mean(w), m = Σud / n is a ratio estimator and se its linearised standard error
(`max_t.Family`). Signs are tossed for each u·d, whose sum of squares they keep; the statistic is r = |Σud| / √Σ(ud)².
If R², the square of the family's bound of r, reaches Kish's effective number of queries (Σw)² / Σw², so that a few
queries have most of the demand, nothing is significant; nor is anything below 2 effective queries, where one has nearly
all the demand and its own spread is unknown.

The toss takes differences for symmetric. A pair is significant only if `skew`, which does not, agrees, except for
measures of yes or no: for these the toss is exact. A simultaneous interval excludes 0 exactly if
its pair is significant: an end on the wrong side of 0 by itself is moved to 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchbench.ir.demand import scale_weights
from benchbench.ir.statistics import resampling
from benchbench.ir.statistics.max_t import Family, FlipStatistics, pair_runs
from benchbench.ir.statistics.resampling import ComparisonError, Interval, Values
from benchbench.ir.statistics.skew import Estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two runs, by their row in the values, compared on n queries. All differences are `first` − `second`.

    A pair without variance has no `effect`. A constant difference other than 0 counts as t = ∞; without any, both
    p-values are 1.
    """

    first: int
    second: int
    difference: float  # of the means, in the unit of the measure
    standard_error: float  # of the difference: sd / √n, sd with n − 1; with weights see above
    error: float  # the same with unseen queries, see `skew`; never 0
    interval: Interval  # bootstrap-t of the difference alone, not corrected for the family
    simultaneous: Interval | None  # see `skew`; None below 20 queries, and where few have most of the demand
    p_t: float  # Student's paired t-test of this pair alone, for reference; n is the effective number
    p_adjusted: float  # within the family, by max-|t|: the one to judge by
    significant: bool  # p_adjusted ≤ alpha, and not `held_back`; only then the simultaneous interval excludes 0
    held_back: bool  # p_adjusted ≤ alpha, but not if differences may be skewed
    step: float  # |d| of every query that differs, if that is the range of the measure, as for yes or no; otherwise 0
    effect: float | None  # Cohen's d_z: difference / sd, with weights the sd over the demand
    wins: int  # queries on which `first` is better by more than rounding
    ties: int
    losses: int
    improved: float  # share of the demand on which `first` is better: wins / n with equal weights
    worsened: float
    detectable: float | None  # smallest true difference found with the comparison's power; None if none can be

    @property
    def reversed(self) -> Pair:
        """Return the pair with `first` and `second` exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            interval=_negate(self.interval),
            simultaneous=self.simultaneous and _negate(self.simultaneous),
            effect=None if self.effect is None else -self.effect,
            wins=self.losses,
            losses=self.wins,
            improved=self.worsened,
            worsened=self.improved,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A family of pairs under one error rate.

    `means` are over the n compared queries, so they may differ from those of a leaderboard if a run failed on some.
    `critical` is the |t| that a significant pair exceeds, about 3.6 for all pairs of 16 unlike runs. It is absent if n
    is so small that nothing can be significant (at alpha = .05 fewer than 6 queries), if a few queries have most of the
    demand, so that p_adjusted is 1, or if no pair has variance.
    """

    pairs: tuple[Pair, ...]  # (0, 1), (0, 2), … (1, 2), …; or every other run against the baseline, which is `second`
    baseline: int | None
    means: tuple[float, ...]  # one for each run
    n: int  # queries compared
    effective: float  # queries of equal weight that would be as certain: n, or less with weights that differ
    is_weighted: bool  # whether the means and tests weigh the queries, whose weights then differ
    left_out: int  # queries without a value in some run
    critical: float | None
    alpha: float
    power: float
    resamples: int  # sign patterns that the observed one was compared with
    exact: bool  # whether these were all patterns, so that the randomisation adds no error
    seed: int

    def get_pair(self, first: int, second: int) -> Pair:
        """Return the pair seen from `first`. Raises ComparisonError if the family does not contain it."""
        index = self._find_index(first, second)
        if index is None:
            raise ComparisonError(
                f"Runs {first} and {second} are not a pair of this comparison"
                + (f", which compares every run with run {self.baseline}." if self.baseline is not None else ".")
            )
        pair = self.pairs[index]
        return pair if pair.first == first else pair.reversed

    def _find_index(self, first: int, second: int) -> int | None:
        """Return the index of the two in `pairs`. It is computed, because a search would cost more than comparing."""
        runs = len(self.means)
        low, high = sorted((first, second))
        if low < 0 or high >= runs or low == high:
            return None
        if self.baseline is None:
            return low * (2 * runs - low - 1) // 2 + high - low - 1
        if self.baseline not in (low, high):
            return None
        opponent = low + high - self.baseline
        return opponent - (opponent > self.baseline)


def compare(
    values: Values,
    *,
    seed: int,
    baseline: int | None = None,
    weights: Values | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    resamples: int = 10_000,
) -> Comparison:
    """Compare the runs of `values`, float64 (runs, queries) with NaN for a failed query, on the queries all answered.

    `weights`, (queries,), are the demand of the queries in any unit; equal ones give what none give, to the bit.

    The family is all pairs, or with `baseline` (a row) every other run against it. Choose the baseline in advance.

    p-values are (1 + as large) / (1 + drawn), never 0 (Phipson and Smyth 2010); with 2^n ≤ resamples every pattern of
    signs is used and they are exact. Equal seeds give equal answers; see `resampling` for what a draw depends on:
    reordered runs keep their p-values, and their intervals to rounding.

    120 pairs × 10,000 × 1,000 queries take a quarter of a second on 2 cores; memory grows with runs × resamples and
    with pairs. Raises ComparisonError for fewer than 2 runs or common queries, a baseline that is not a row, alpha or
    power outside (0, 1), too few resamples to reach alpha.
    """
    resampling.require_settings(alpha=alpha, power=power, resamples=resamples)
    common = resampling.find_common_queries(values)
    array = np.ascontiguousarray(np.asarray(values, np.float64)[:, common])
    _require_family(len(array), baseline)
    scaled = scale_weights(None if weights is None else np.asarray(weights, np.float64)[common])
    distinct, row_of = _find_distinct(array)
    family = Family.from_values(distinct, None if baseline is None else row_of[baseline], scaled)
    flipped = distinct if scaled is None else distinct * scaled
    drawn = FlipStatistics.from_values(flipped, family, resamples=resamples, seed=seed)
    critical = drawn.compute_critical(alpha)
    estimates = Estimates.from_values(
        distinct, family, critical=critical, alpha=alpha, resamples=resamples, seed=seed, weights=scaled
    )
    pairs = _yield_pairs(family, drawn, estimates, alpha=alpha, power=power)
    equal = _equal_pair(family.n, *estimates.find_equal())
    return Comparison(
        pairs=tuple(_expand_pairs(pairs, row_of, baseline, equal)),
        baseline=baseline,
        means=tuple((array if scaled is None else array * scaled).mean(axis=1).tolist()),
        n=family.n,
        effective=family.effective,
        is_weighted=scaled is not None,
        left_out=int((~common).sum()),
        critical=critical,
        alpha=alpha,
        power=power,
        resamples=len(drawn.greatest),
        exact=resampling.enumerates(family.n, resamples),
        seed=seed,
    )


def _require_family(runs: int, baseline: int | None) -> None:
    if runs < 2:
        raise ComparisonError(f"A comparison needs at least 2 runs, not {runs}.")
    if baseline is not None and not 0 <= baseline < runs:
        raise ComparisonError(f"The baseline must be a run from 0 to {runs - 1}, not {baseline}.", field="baseline")


def _find_distinct(values: Values) -> tuple[Values, list[int]]:
    """Return the rows that differ, in order of appearance, and of each run its row among them.

    Cuts of one list often have equal values. Draws for equal runs are made once.
    """
    numbers: dict[bytes, int] = {}
    row_of = [numbers.setdefault(row.tobytes(), len(numbers)) for row in values]
    return values[[row_of.index(number) for number in range(len(numbers))]], row_of


def _expand_pairs(pairs: Iterable[Pair], row_of: Sequence[int], baseline: int | None, equal: Pair) -> Iterator[Pair]:
    """Yield the pairs of all runs from the `pairs` of those that differ."""
    pairs_by_rows = {(pair.first, pair.second): pair for pair in pairs}
    for first, second in zip(*(side.tolist() for side in pair_runs(len(row_of), baseline)), strict=True):
        rows = row_of[first], row_of[second]
        if rows not in pairs_by_rows and rows[::-1] in pairs_by_rows:
            pairs_by_rows[rows] = pairs_by_rows[rows[::-1]].reversed
        yield replace(pairs_by_rows.get(rows, equal), first=first, second=second)


def _equal_pair(n: int, error: float, alone: float, simultaneous: float | None) -> Pair:
    """Return the pair of two runs with equal values, with half the widths of its intervals."""
    return Pair(
        first=0,
        second=0,
        difference=0.0,
        standard_error=0.0,
        error=error,
        interval=Interval(-alone, alone),
        simultaneous=None if simultaneous is None else Interval(-simultaneous, simultaneous),
        p_t=1.0,
        p_adjusted=1.0,
        significant=False,
        held_back=False,
        step=0.0,
        effect=None,
        wins=0,
        ties=n,
        losses=0,
        improved=0.0,
        worsened=0.0,
        detectable=None,
    )


def _yield_pairs(
    family: Family, drawn: FlipStatistics, estimates: Estimates, *, alpha: float, power: float
) -> Iterator[Pair]:
    p_t, p_adjusted = _compute_p(family, drawn, estimates)
    is_low = p_adjusted <= alpha + 1e-12
    significant = is_low & estimates.is_clear()
    sign = np.sign(family.difference) * significant
    single, simultaneous = estimates.find_ends(estimates.single), estimates.find_ends(estimates.bound, sign)
    detectable = estimates.find_detectable(family, power)
    for index, (difference, deviation) in enumerate(
        zip(family.difference.tolist(), family.deviation.tolist(), strict=True)
    ):
        wins, losses = int(family.wins[index]), int(family.losses[index])
        yield Pair(
            first=int(family.first[index]),
            second=int(family.second[index]),
            difference=difference,
            standard_error=deviation / math.sqrt(family.n),
            error=float(estimates.error[index]),
            interval=Interval(*single[index].tolist()),
            simultaneous=Interval(*simultaneous[index].tolist()) if estimates.has_intervals else None,
            p_t=float(p_t[index]),
            p_adjusted=float(p_adjusted[index]),
            significant=bool(significant[index]),
            held_back=bool(is_low[index] and not significant[index]),
            step=estimates.unit if estimates.is_binary[index] else 0.0,
            effect=difference / float(family.spread[index]) if deviation else None,
            wins=wins,
            ties=family.n - wins - losses,
            losses=losses,
            improved=float(family.improved[index]),
            worsened=float(family.worsened[index]),
            detectable=float(detectable[index]) if estimates.critical and wins + losses else None,
        )


def _compute_p(family: Family, drawn: FlipStatistics, estimates: Estimates) -> tuple[Values, Values]:
    """Return the p-values of Student's test of each pair, and those within the family."""
    from scipy.special import stdtr

    p_t, p_adjusted = np.ones((2, len(family.first)))
    differs = family.differs
    with np.errstate(divide="ignore"):
        t = np.abs(family.difference[differs]) / (family.deviation[differs] / math.sqrt(family.n))
    p_t[differs] = 2 * stdtr(family.effective - 1, -t)
    if not family.is_weighted or estimates.critical is not None:
        p_adjusted[differs] = drawn.p_family
    return p_t, p_adjusted


def _negate(interval: Interval) -> Interval:
    return Interval(-interval.high, -interval.low)
