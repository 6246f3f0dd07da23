"""Resampling of queries and of signs: the basis of every interval and every test of this package.

Values are float64 arrays (runs, queries) of one measure, NaN where a run failed on a query. A draw is made per query
and serves every run at once, which keeps runs paired. It depends on the seed and the number of queries alone: adding,
removing or reordering runs does not change it, while another order of the queries gives each query another draw, so
give queries in a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.ir.demand import scale_weights

Values = NDArray[np.float64]

ALPHA = 0.05  # of an interval of one mean
SAME = 1e-9  # values that differ by less differ by rounding: a measure is a sum of a few terms of the order of 1
BLOCK = 2**19  # numbers in an array that is made for a block: 4 MB, which a cache holds
TOSSES = 1_000  # of the signs of every query, for the optimism
MAX_CACHED_DRAWS = 2**24  # draws of a query that are kept: 32 MB
SIGNS, DRAWS = 0, 1  # the two streams of random numbers under one seed


class ComparisonError(BenchbenchError):
    """The values cannot be compared, or the comparison has invalid settings."""

    code = "comparison"


@dataclass(frozen=True, slots=True)
class Interval:
    """The closed interval from `low` to `high`, in the unit of the measure."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """The mean of one run over the `n` queries that it answered: None without any, and no `interval` under 2."""

    mean: float | None
    interval: Interval | None
    n: int


def check_values(values: Values) -> Values:
    """Return `values` as float64 (runs, queries). Raises ComparisonError for another shape or an infinite value."""
    array = np.asarray(values, np.float64)
    if array.ndim != 2:
        raise ComparisonError(f"Values must be runs × queries, not an array of {array.ndim} dimensions.")
    if np.isinf(array).any():
        run, query = np.argwhere(np.isinf(array))[0].tolist()
        raise ComparisonError(f"The value of run {run} on query {query} is infinite; use NaN for a failed query.")
    return array


def find_common_queries(values: Values) -> NDArray[np.bool_]:
    """Return a mask of the queries that every run answered, shape (queries,).

    Raises ComparisonError for fewer than 2 such queries: the spread of one query is unknown.
    """
    array = check_values(values)
    answered = ~np.isnan(array)
    common = np.asarray(answered.all(axis=0), np.bool_)
    if common.sum() < 2:
        fewest = int(answered.sum(axis=1).argmin()) if len(array) else 0
        have = "has" if common.sum() == 1 else "have"
        detail = f"; run {fewest} answered fewest, {answered[fewest].sum()}" if len(array) else ""
        raise ComparisonError(
            f"Only {common.sum()} of {counted(array.shape[1], 'query')} {have} a value in every "
            f"compared run{detail}. A comparison needs at least 2: leave out runs that failed, or run "
            "them again."
        )
    return common


def cut_blocks(total: int, width: int) -> Iterator[slice]:
    """Yield slices that cover `range(total)`, each with as many rows of the given width as fit in a block."""
    rows = max(1, BLOCK // max(1, width))
    return (slice(start, min(start + rows, total)) for start in range(0, total, rows))


def enumerates(queries: int, resamples: int) -> bool:
    """Return whether `draw_flips` gives every pattern of signs instead of random ones."""
    return queries <= math.log2(resamples)


def draw_flips(queries: int, *, resamples: int, seed: int) -> Iterator[Values]:
    """Yield blocks (patterns, queries) of signs, +1 or −1, without the pattern that flips nothing.

    They are `resamples` random patterns or, if `enumerates`, all patterns up to reversing every sign, which changes no
    two-sided test: 2^(queries − 1) − 1 patterns, in which the first query keeps its sign.
    """
    if enumerates(queries, resamples):
        places = np.arange(queries) - 1
        for block in cut_blocks(2 ** (queries - 1) - 1, queries):
            patterns = np.arange(block.start, block.stop)[:, None] + 1
            flipped = (places >= 0) & (patterns >> places.clip(0) & 1 == 1)
            yield 1 - 2 * flipped.astype(np.float64)
        return
    rng = np.random.default_rng((seed, SIGNS))
    width = -(-queries // 8)
    for block in cut_blocks(resamples, queries):
        rows = block.stop - block.start
        packed = np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)
        yield (np.unpackbits(packed, axis=1, count=queries).view(np.int8) * 2 - 1).astype(np.float64)


def bootstrap_means(values: Values, *, resamples: int, seed: int, weights: Values | None = None) -> Values:
    """Return means of each row of `values` (rows, queries) over queries drawn with replacement, (rows, resamples).

    Column b is the same draw for every row, so the difference of two rows is a paired bootstrap. No NaN. With `weights`
    (queries,) a query is drawn with its weight, as often as any other, and a mean is Σwx / Σw over the draw: the ratio
    estimator (Efron and Tibshirani 1993, chapter 10).
    """
    if weights is not None:
        sums = bootstrap_means(np.vstack([values * weights, weights]), resamples=resamples, seed=seed)
        ratios: Values = sums[:-1] / sums[-1]
        return ratios
    queries = values.shape[1]
    means = np.empty((len(values), resamples))
    if not means.size:
        return means
    for block, drawn in zip(cut_blocks(resamples, queries), draw_counts(queries, resamples, seed), strict=True):
        means[:, block] = values @ drawn.T.astype(np.float64) / queries
    return means


def draw_counts(queries: int, resamples: int, seed: int) -> Iterable[NDArray[np.uint16]]:
    """Return blocks (draws, queries) of how often each query is drawn, cut by `cut_blocks`."""
    times = _get_draws if queries * resamples <= MAX_CACHED_DRAWS else _draw_queries
    return times(queries, resamples, seed)


def _draw_queries(queries: int, resamples: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    """Yield blocks (draws, queries) of how often each query is drawn, always at most 65,535 times."""
    rng = np.random.default_rng((seed, DRAWS))
    for block in cut_blocks(resamples, queries):
        rows = block.stop - block.start
        drawn = rng.integers(0, queries, (rows, queries))
        drawn += np.arange(rows)[:, None] * queries
        yield np.bincount(drawn.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.uint16)


@lru_cache(maxsize=2)
def _get_draws(queries: int, resamples: int, seed: int) -> tuple[NDArray[np.uint16], ...]:
    """Return the draws from a cache: the next comparison of the same queries needs them too, and drawing costs most."""
    return tuple(_draw_queries(queries, resamples, seed))


def percentile_interval(means: Values, alpha: float) -> Values:
    """Return the middle 1 − alpha of bootstrapped means (rows, resamples), shape (rows, 2).

    The percentile interval of Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13: to the bit
    `np.quantile`, which takes twice as long.
    """
    last = means.shape[1] - 1
    ordered = means.copy()
    ends = np.empty((len(means), 2))
    for end, position in enumerate((last * (alpha / 2), last * (1 - alpha / 2))):
        index = math.floor(position)
        ordered.partition(index, axis=1)
        low, high, fraction = ordered[:, index], ordered[:, index + 1 :].min(axis=1), position - index
        # From the nearer of the two, as NumPy does it.
        ends[:, end] = low + (high - low) * fraction if fraction < 0.5 else high - (high - low) * (1 - fraction)
    return ends


def mean_intervals(
    values: Values,
    *,
    seed: int,
    resamples: int = 10_000,
    only: Collection[int] | None = None,
    weights: Values | None = None,
) -> list[MeanInterval]:
    """Return each run's mean with a bootstrap interval over its answered queries; `values` is (runs, queries).

    Each interval covers its own mean with 95 %. Two such intervals do not show whether two runs differ, because
    they ignore that the queries are the same; use `compare`. `only` limits the runs that get an interval. `weights` is
    (queries,). Raises ComparisonError as `check_values` does.
    """
    array = check_values(values)
    require_settings(alpha=ALPHA, resamples=resamples)
    answered = ~np.isnan(array)
    intervals: dict[int, MeanInterval] = {}
    for mask in answered[:1] if answered.all() else np.unique(answered, axis=0):  # which sorts, and so takes long
        runs = np.flatnonzero((answered == mask).all(axis=1))
        n = int(mask.sum())
        rows = array[np.ix_(runs, mask)]
        scaled = scale_weights(None if weights is None else weights[mask])
        means = (rows if scaled is None else rows * scaled).mean(axis=1).tolist() if n else [None] * len(runs)
        drawn = np.array([n > 1 and (only is None or run in only) for run in runs.tolist()], bool)
        resampled = bootstrap_means(rows[drawn], resamples=resamples, seed=seed, weights=scaled)
        ends = iter(percentile_interval(resampled, ALPHA).tolist())
        for run, mean, has_interval in zip(runs.tolist(), means, drawn, strict=True):
            intervals[run] = MeanInterval(mean, Interval(*next(ends)) if has_interval else None, n)
    return [intervals[run] for run in range(len(array))]


def require_settings(*, alpha: float, resamples: int, power: float = 0.8) -> None:
    """Raise ComparisonError unless alpha and power are inside (0, 1) and the resamples suffice to reach alpha."""
    for name, value in (("alpha", alpha), ("power", power)):
        if not 0 < value < 1:
            raise ComparisonError(f"{name} must be above 0 and below 1, not {value}.", field=name)
    if alpha * (resamples + 1) < 1:
        raise ComparisonError(
            f"With {resamples} resamples no p-value can be as small as alpha = {alpha}; use 10,000.", field="resamples"
        )


def compute_optimism(values: Values, *, seed: int, weights: Values | None = None) -> float:
    """Return the expected lead by chance of the best mean over the mean of all runs, in the unit of the measure.

    `values` are float64 (runs, queries), with NaN for a failed query, and `weights` (queries,) their demand. If no run
    were better than another, its differences from the mean run could as well have the other sign. So signs are tossed,
    one per query for all runs, as in the max-|t| family of `significance`, and the greatest mean difference of each
    toss is averaged. See Cawley and Talbot, On Over-fitting in Model Selection (2010). Raises ComparisonError for fewer
    than 2 common queries.
    """
    common = find_common_queries(values)
    array = np.asarray(values, np.float64)[:, common]
    deviations = array - array.mean(axis=0)
    scaled = scale_weights(None if weights is None else np.asarray(weights, np.float64)[common])
    if scaled is not None:
        deviations = deviations * scaled
    queries = deviations.shape[1]
    tosses = draw_flips(queries, resamples=TOSSES, seed=seed)
    greatest = [(signs @ deviations.T).max(axis=1) / queries for signs in tosses]
    return float(np.concatenate(greatest).mean())
