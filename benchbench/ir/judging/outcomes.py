"""Outcomes of a comparison under many fillings: significant differences, the best group, and a forecast of the grades
that the verdict still needs.

The rule is that of `statistics`: |t| of a pair's per-query differences against the critical value of its family, with
an allowance for skew. Both depend on the correlation and the shape of the runs' values, hardly on single grades, and
are computed once for a model. With every hole filled the outcomes are those of `statistics.compare` with the same seed.

The forecast: each drawn filling is taken for the truth in turn. Judging the m weightiest holes takes the share ρ(m) of
the variance that holes leave in a difference (the sum of effect² · spread² of these holes over that of all), and what
is then expected has moved the share ρ(m) of the way from now to that truth. The pair is settled once what is expected
is further from both bars of significance than z spreads of what is left. The forecast is the median of m over the
truths: it allows for differences that grow as they become known, and for those that shrink. Normal, as in the stopping
rule of Carterette, Allan and Sitaraman (SIGIR 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.state import WITHIN, MoreGrades
from benchbench.ir.measures import Values
from benchbench.ir.statistics.max_t import Family, FlipStatistics
from benchbench.ir.statistics.resampling import SAME
from benchbench.ir.statistics.skew import Estimates, find_bars

ALPHA = 0.05
FLIPS = 10_000  # as `statistics.compare`: with fewer, near the bar, the last grade alone turns the verdict
# Measured where rounds settle, on complete collections (docs/statistics.md): else 95 % intervals hold 95 % of the
# differences, but 89 % of ADI's, and 77 % of the means, whose common error cancels in differences.
WIDER_DIFFERENCES, WIDER_MEANS = 1.2, 1.7
SKEWED_BY = 5  # fillings of which the skew is looked at
STEPS = 48  # numbers of further grades that a forecast looks at
AT_ONCE = 20  # fillings whose centred values are in memory together: as many as a processor's cache holds


@dataclass(frozen=True, eq=False)
class Criterion:
    """When differences are significant."""

    critical: float  # of the family: what |t| has to exceed; infinite if no difference can be significant
    allowances: Values  # (p,): factors of `skew.find_bars` for the skew of each pair

    @classmethod
    def from_values(cls, values: Values, *, seed: int) -> Criterion:
        """Return the criterion of fillings (m, R, Q).

        Allowances are medians over a few fillings: expected values are skewed by themselves, since those of queries
        with holes differ less than any filling's.
        """
        expected = values.mean(axis=0)
        family = Family.from_values(expected, None)
        critical = FlipStatistics.from_values(expected, family, resamples=FLIPS, seed=seed).compute_critical(ALPHA)
        if critical is None:
            return cls(np.inf, np.ones(len(family.first)))
        some = values[:: max(1, len(values) // SKEWED_BY)]
        return cls(critical, np.median([_find_allowances(filling, critical, seed) for filling in some], axis=0))


def _find_allowances(values: Values, critical: float, seed: int) -> Values:
    family = Family.from_values(values, None)
    estimates = Estimates.from_values(values, family, critical=critical, alpha=ALPHA, resamples=FLIPS, seed=seed)
    errors = family.deviation / np.sqrt(family.n)
    bars = np.where(estimates.is_binary, critical * errors, estimates.bar)
    return np.asarray(bars / find_bars(errors, family.n, critical), np.float64)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes for m fillings and p pairs of runs."""

    first: NDArray[np.intp]  # (p,): rows of the runs, as in `statistics.compare`
    second: NDArray[np.intp]
    means: Values  # (m, R)
    differences: Values  # (m, p): of means, first − second
    errors: Values  # (m, p): the standard errors of the differences; 0 where a pair has no variance
    critical: float  # what |t| has to exceed; infinite where nothing can be significant
    bars: Values  # (m, p): what |difference| has to exceed

    @classmethod
    def from_values(
        cls, values: Values, pairs: tuple[NDArray[np.intp], NDArray[np.intp]], criterion: Criterion
    ) -> Outcomes:
        """Return the outcomes of `values` (m, R, Q) without NaN, Q ≥ 2, by a criterion.

        `pairs` are those of `max_t.pair_runs`.
        """
        means = values.mean(axis=2)
        products = np.empty((*values.shape[:2], values.shape[1]))
        for start in range(0, len(values), AT_ONCE):
            block = slice(start, start + AT_ONCE)
            centred = values[block] - means[block, :, None]
            np.matmul(centred, np.swapaxes(centred, 1, 2), out=products[block])
        products /= values.shape[2] - 1
        variances = np.diagonal(products, axis1=1, axis2=2)
        first, second = pairs
        variance = variances[:, first] + variances[:, second] - 2 * products[:, first, second]
        errors = np.sqrt(np.where(variance > SAME**2, variance, 0.0) / values.shape[2])
        bars = criterion.allowances * find_bars(errors, values.shape[2], criterion.critical)
        return cls(first, second, means, means[:, first] - means[:, second], errors, criterion.critical, bars)

    @property
    def signs(self) -> NDArray[np.int8]:
        """Return 1 if the first is significantly better, −1 if the second is, 0 if neither, (m, p)."""
        return (np.sign(self.differences) * (np.abs(self.differences) > self.bars)).astype(np.int8)

    @property
    def margins(self) -> Values:
        """Return the reach of intervals about the expected differences that hold together, (p,). It may be infinite.

        critical × √(mean of the squared errors + (1 + 1 / m) × variance over the fillings): multiple imputation (Rubin
        1987). So they cover the choice of queries, and what the holes leave open.
        """
        between = (1 + 1 / len(self.errors)) * self.differences.var(axis=0, ddof=1)
        spread = np.sqrt((self.errors**2).mean(axis=0) + between)
        return np.asarray(self.critical * spread if np.isfinite(self.critical) else np.full_like(spread, np.inf))

    def find_groups(self) -> NDArray[np.bool_]:
        """Return masks (m, R) of the run with the greatest mean and the runs not significantly different from it."""
        m, runs = self.means.shape
        differs = np.zeros((m, runs, runs), bool)
        differs[:, self.first, self.second] = differs[:, self.second, self.first] = self.signs != 0
        return np.asarray(~differs[np.arange(m), self.means.argmax(axis=1)], np.bool_)


def find_likeliest(signs: NDArray[np.int8]) -> tuple[NDArray[np.int8], Values]:
    """Return the outcome that most fillings have, and their share, (p,) each; in a tie, neither run is better."""
    shares = np.stack([(signs == outcome).mean(axis=0) for outcome in (0, 1, -1)])
    return np.array([0, 1, -1], np.int8)[shares.argmax(axis=0)], shares.max(axis=0)


def find_intervals(drawn: Values, wider: float) -> Values:
    """Return the mean of each of n figures over the fillings (m, n) and the ends of its 95 % interval, (3, n).

    It is `wider` than the spread of the fillings says, since the model errs for all queries alike.
    """
    mean, reach = drawn.mean(axis=0), WITHIN * wider * drawn.std(axis=0)
    return np.stack([mean, mean - reach, mean + reach])


def find_settled(agreeing: NDArray[np.bool_], shares: Values, confidence: float) -> NDArray[np.bool_]:
    """Return a mask of the pairs settled together; `agreeing` (m, p) marks fillings with a pair's likeliest outcome."""
    order = np.argsort(-shares, kind="stable")
    all_agree = np.logical_and.accumulate(agreeing[:, order], axis=1).mean(axis=0)
    settled = np.zeros(len(order), bool)
    settled[order] = all_agree >= confidence
    return settled


def forecast(outcomes: Outcomes, deciding: NDArray[np.intp], gains: Values, *, confidence: float) -> MoreGrades:
    """Return the forecast from `outcomes` of the fillings, the rows of the deciding pairs, (d,), and `gains` (d, h).

    `gains` are the variances that each hole takes from each of these pairs, with the holes in the order of judging.
    """
    holes = gains.shape[1]
    if not holes or not len(deciding):
        return MoreGrades(median=0, p90=0)
    steps = np.unique(np.geomspace(1, holes, STEPS).astype(np.int64))
    total = gains.sum(axis=1, keepdims=True)
    taken = np.divide(
        np.cumsum(gains, axis=1)[:, steps - 1], total, out=np.ones((len(gains), len(steps))), where=total > 0
    )
    taken[:, -1] = 1.0
    truth = outcomes.differences[:, deciding]
    now, spread = truth.mean(axis=0), truth.std(axis=0)
    bar = outcomes.bars[:, deciding].mean(axis=0)
    shares = np.maximum((truth > bar).mean(axis=0), (truth < -bar).mean(axis=0))
    shares = np.maximum(shares, (np.abs(truth) <= bar).mean(axis=0))
    z = NormalDist().inv_cdf(1 - (1 - confidence) / max(1, int((shares < 0.99).sum())))
    expected = now + taken.T[:, None] * (truth - now)  # (steps, draws, d)
    distance = np.minimum(np.abs(expected - bar), np.abs(expected + bar))
    settled = (distance >= z * spread * np.sqrt(np.maximum(1 - taken.T, 0.0))[:, None]).all(axis=2)
    settled[-1] = True
    middle, p90 = np.quantile(steps[settled.argmax(axis=0)], [0.5, 0.9])
    return MoreGrades(median=_round_digits(middle), p90=_round_digits(p90))


def _round_digits(number: float) -> int:
    """Round to two digits to avoid false precision."""
    unit: float = 10 ** max(0, int(np.log10(max(number, 1))) - 1)
    return int(np.ceil(number / unit) * unit)
