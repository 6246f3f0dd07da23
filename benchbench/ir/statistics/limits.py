"""Limits of numbers: the least p that a pair's queries allow, and what two means could support without their values."""

import math
from dataclasses import dataclass

from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import Comparison, Pair
from benchbench.ir.statistics.skew import foresee_detectable

SPREADS = (0.1, 0.2, 0.3)  # common standard deviations of differences, for values from 0 to 1
RESAMPLES = 10_000


def find_attainable_p(pair: Pair, comparison: Comparison) -> float:
    """Return the least p that sign flips can give the pair: 2^(1 − k) if k queries differ, but at least one pattern."""
    return max(2.0 ** (1 - max(1, pair.wins + pair.losses)), 1 / (comparison.resamples + 1))


@dataclass(frozen=True, slots=True)
class Support:
    """Support that the difference of two means over n common queries could have, if one knew the values.

    By Student's paired test at 5 % it is significant if the differences have a standard deviation of at most
    `significant_spread`. Values from 0 to 1 with these means allow one of up to `greatest_spread`, that of values of 0
    and 1 which differ as often as they can; None for other means. By a common standard deviation: `detectable`,
    the true difference that n queries find with a power of 80 %, and `queries_needed` to find the observed one.
    """

    queries: int
    difference: float
    attainable_p: float
    significant_spread: float
    greatest_spread: float | None
    detectable: dict[float, float]
    queries_needed: dict[float, int | None]


def find_support(means: tuple[float, float], queries: int) -> Support:
    """Return what the means of two runs could support. Raises ComparisonError for fewer than 2 queries."""
    from scipy.special import stdtrit

    first, second = means
    if queries < 2 or not math.isfinite(first - second):
        raise ComparisonError("Give two finite means, and at least 2 queries.", field="queries")
    gap, greatest = abs(first - second), None
    if 0 <= min(means) <= max(means) <= 1:
        disagreeing = min(first, 1 - second) + min(second, 1 - first)
        greatest = math.sqrt(max(0.0, disagreeing - gap**2) * queries / (queries - 1))
    per_query = {spread: foresee_detectable(spread, 1, 1) for spread in SPREADS}
    return Support(
        queries=queries,
        difference=first - second,
        attainable_p=max(2.0 ** (1 - queries), 1 / (RESAMPLES + 1)),
        significant_spread=gap * math.sqrt(queries) / float(stdtrit(queries - 1, 0.975)),
        greatest_spread=greatest,
        detectable={spread: foresee_detectable(spread, queries, 1) for spread in SPREADS},
        queries_needed={spread: math.ceil((d / gap) ** 2) if gap else None for spread, d in per_query.items()},
    )
