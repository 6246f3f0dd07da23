"""The verdict of a comparison: a winner, or the runs that are too close, and the number of queries to separate them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import Comparison, Pair
from benchbench.ir.statistics.skew import bound_by_score, foresee_detectable

Standing = Literal["baseline", "best", "better", "worse", "not distinguishable"]
MAX_TIMES = 10  # the compared queries: more are never judged to settle a difference
MAX_QUERIES = 100_000  # a difference that needs more is too small to settle by judging


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The runs of a comparison, grouped by their relation to `reference`: significantly better, worse, or undecided.

    Without a baseline the reference is the run with the greatest mean, and of equal means the first. With a baseline
    it is the baseline. The other runs were not tested against each other then, so the verdict names no best run.
    """

    reference: int
    against_baseline: bool
    better: tuple[int, ...]  # each tuple by falling mean
    undecided: tuple[int, ...]
    worse: tuple[int, ...]
    more_queries: tuple[int | None, ...]  # for each undecided run, see `estimate_queries`
    queries: float = math.inf  # compared

    @property
    def winner(self) -> int | None:
        """Return the run that is significantly better than every other; None without such a run or with a baseline."""
        return None if self.against_baseline or self.undecided else self.reference

    @property
    def group(self) -> tuple[int, ...]:
        """Return the reference and the runs not significantly different from it."""
        return (self.reference, *self.undecided)

    def find_standing(self, run: int) -> Standing:
        """Return the standing of a run against the reference."""
        if run == self.reference:
            return "baseline" if self.against_baseline else "best"
        if run in self.better:
            return "better"
        return "worse" if run in self.worse else "not distinguishable"

    @property
    def settled_by(self) -> int | None:
        """Estimate how many more queries would decide all undecided runs; None for an unrealistic number."""
        needed = [number for number in self.more_queries if number is not None]
        return max(needed, default=0) if len(needed) == len(self.more_queries) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCheck:
    """Whether a run loses more than a limit against another one. All in the unit of the measure.

    `is_excluded`: `lower`, the lower end of an interval of the difference, bounds the loss by the limit. `is_shown`:
    the loss is significant, and greater than the limit. Neither of both means that the queries are too few;
    `more_queries` would probably decide, None for an unrealistic number.
    """

    limit: float
    lower: float
    is_excluded: bool
    is_shown: bool
    more_queries: int | None


def check_loss(
    *,
    difference: float,
    lower: float | None,
    is_significant: bool,
    detectable: float | None,
    n: float,
    limit: float,
) -> LossCheck:
    """Check a loss, a negative `difference` of means over n queries, by an interval that begins at `lower`.

    "No significant loss" is not "no loss": few queries show none. `lower` may be missing. `detectable` is
    the smallest true difference that they find with the intended power; None if it is unknown.
    """
    is_excluded, is_shown = lower is not None and lower >= -limit, is_significant and -difference > limit
    gap = difference + limit if -difference <= limit else -difference
    more = None if is_excluded or is_shown or detectable is None else estimate_more(n, detectable, gap)
    bound = -math.inf if lower is None else lower
    return LossCheck(limit=limit, lower=bound, is_excluded=is_excluded, is_shown=is_shown, more_queries=more)


def check_non_inferiority(pair: Pair, n: float, margin: float, *, alpha: float = 0.05, power: float = 0.8) -> LossCheck:
    """Check whether a pair's true loss is at most `margin`, over n queries, by a one-sided interval of the difference.

    lower = difference − t(1 − alpha, n − 1) × standard error; the source is Walker and Nowacki, Understanding
    Equivalence and Noninferiority Testing (2011). If no difference varies, and for measures of yes or no, the error has
    two unseen queries (`skew`); for these `lower` is at most Tango's score bound. With weights, n is the effective
    number of queries. State the margin before you look at the difference.
    Raises ComparisonError for a margin that is not above 0, or infinite, and for fewer than 2 effective queries.
    """
    from scipy.special import stdtrit

    if not 0 < margin < math.inf:
        raise ComparisonError(f"The margin must be a number above 0, not {margin}.", field="margin")
    if n < 2:
        raise ComparisonError(
            "One query has nearly all the demand, so the others bound no loss: weigh the queries equally.",
            field="margin",
        )
    critical = float(stdtrit(n - 1, 1 - alpha))
    error = pair.error if pair.step else pair.standard_error or pair.error
    lower = pair.difference - critical * error
    if pair.step:
        every = pair.wins + pair.ties + pair.losses
        score = bound_by_score(pair.wins, pair.losses, every, NormalDist().inv_cdf(1 - alpha))
        lower = min(lower, pair.step * score)
    return check_loss(
        difference=pair.difference,
        lower=lower,
        is_significant=pair.significant,
        detectable=(critical + NormalDist().inv_cdf(power)) * error,
        n=n,
        limit=margin,
    )


def find_verdict(comparison: Comparison) -> Verdict:
    """Return the winner or the best group; with a baseline, the runs that are better or worse than it."""
    order = sorted(range(len(comparison.means)), key=lambda run: (-comparison.means[run], run))
    reference = order[0] if comparison.baseline is None else comparison.baseline
    pairs = {run: comparison.get_pair(run, reference) for run in order if run != reference}
    undecided = [run for run, pair in pairs.items() if not pair.significant]
    return Verdict(
        reference=reference,
        against_baseline=comparison.baseline is not None,
        better=tuple(run for run, pair in pairs.items() if pair.significant and pair.difference > 0),
        undecided=tuple(undecided),
        worse=tuple(run for run, pair in pairs.items() if pair.significant and pair.difference < 0),
        more_queries=tuple(estimate_queries(pairs[run], comparison) for run in undecided),
        queries=comparison.n,
    )


def compute_rank_ranges(comparison: Comparison) -> tuple[tuple[int, int], ...]:
    """Return the first and last rank of each run that its significant differences leave open.

    A run's first rank is 1 + the number of runs that are significantly better, its last rank n − the number that are
    significantly worse. The family-wise error rate covers all pairs at once, so with probability at least 1 − alpha all
    true ranks are in these ranges (Mogstad, Romano, Shaikh and Wilhelm, Inference for Ranks, 2024). Raises
    ComparisonError for a comparison with a baseline, which tests no other pairs.
    """
    if comparison.baseline is not None:
        raise ComparisonError("Ranks need all pairs of runs: compare without a baseline.", field="baseline")
    decided = [pair if pair.difference > 0 else pair.reversed for pair in comparison.pairs if pair.significant]
    return count_ranks(len(comparison.means), [(pair.first, pair.second) for pair in decided])


def count_ranks(runs: int, decided: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the first and last rank of each run, from the pairs of which the first run is better."""
    better, worse = Counter[int](), Counter[int]()
    for winner, loser in decided:
        worse[winner] += 1
        better[loser] += 1
    return tuple((1 + better[run], runs - worse[run]) for run in range(runs))


def estimate_queries(pair: Pair, comparison: Comparison) -> int | None:
    """Estimate how many more queries would find the pair's difference with the comparison's power, to two digits.

    The standard error falls with √n, so n has to grow by (detectable / |difference|)². This assumes that the observed
    difference and spread are exact: read it as "tens, hundreds or thousands". Returns None for an unrealistic number:
    no difference, no variance, more than 100,000, or demand of which a few queries have most, whose spread is unknown.
    """
    if not pair.wins + pair.losses:
        return None
    more = estimate_more(comparison.n, find_detectable(pair, comparison), pair.difference)
    return None if comparison.is_weighted and more == 1 else more


def find_detectable(pair: Pair, comparison: Comparison) -> float:
    """Return the smallest true difference found with the comparison's power, if it has the spread of the observed one.

    With too few queries for any to be significant it is what they would find if they were enough. It falls with √n:
    `Pair.detectable` also allows for unseen queries, and for the greater spread of a greater difference of yes or no.
    """
    if pair.detectable and pair.held_back:
        return pair.detectable
    spread, power = pair.standard_error or pair.error, comparison.power
    if comparison.critical is not None:
        return (comparison.critical + NormalDist().inv_cdf(power)) * spread
    return foresee_detectable(spread, 1, len(comparison.pairs), alpha=comparison.alpha, power=power)


def estimate_more(n: float, detectable: float, gap: float) -> int | None:
    """Estimate how many more queries than n would detect a `gap`, to two digits; None for an unrealistic number."""
    if not gap:
        return None
    more = n * ((detectable / gap) ** 2 - 1)
    if more > MAX_QUERIES:
        return None
    unit: int = 10 ** max(0, math.floor(math.log10(max(more, 1))) - 1)
    return max(1, math.ceil(more / unit) * unit)


def is_realistic(more: int | None, n: float) -> bool:
    """Return whether so many more queries may be judged: at most ten times the n that were compared."""
    return more is not None and more <= MAX_TIMES * n
