"""The frontier of quality and cost: runs that no other run dominates, and the cheapest good run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import le

from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import Comparison, Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run: the mean of a measure, a latency and the size of its index; None for an unknown one.

    `llm_calls` are the calls of a language model per query.
    """

    quality: float
    latency_ms: float | None
    index_bytes: float | None
    llm_calls: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The cheapest run that is not significantly worse than the best one within the bounds.

    Not significantly worse is not as good: `most_lost` is how much quality it may cost, the upper end of the
    simultaneous interval of best − run; 0 where the run is itself the best, None where too few queries say.
    """

    run: int
    best: int
    within: tuple[int, ...]  # all runs within the bounds
    most_lost: float | None


def find_frontier(points: Sequence[Point]) -> tuple[int, ...]:
    """Return the positions of the points that no other point dominates.

    A dominating point is as good in quality, latency, size and calls, and better in one of them. Equal points stay
    together. A point without latency or size is left out and dominates no other.
    """
    corners = {
        position: (-point.quality, point.latency_ms, point.index_bytes, point.llm_calls)
        for position, point in enumerate(points)
        if point.latency_ms is not None and point.index_bytes is not None
    }
    return tuple(
        position
        for position, corner in corners.items()
        if not any(rival != corner and all(map(le, rival, corner)) for rival in corners.values())
    )


def find_cheapest(
    comparison: Comparison,
    points: Sequence[Point],
    *,
    max_latency_ms: float | None = None,
    max_index_bytes: float | None = None,
) -> Choice | None:
    """Return the cheapest run that is not significantly worse than the best one within the bounds.

    Cheapness is by latency, then size, then quality. `points` are those of the comparison's runs, in their order;
    quality is the comparison's mean, not the point's. A bound excludes runs without the figure; without a bound they
    come last. Returns None if no run is within the bounds. Raises ComparisonError for a comparison against a baseline,
    which does not compare every run with the best.
    """
    if comparison.baseline is not None:
        raise ComparisonError("The cheapest run needs a comparison of all pairs, not against a baseline.")
    if len(points) != len(comparison.means):
        raise ComparisonError(f"{len(comparison.means)} runs need as many points, not {len(points)}.")
    within = [
        run
        for run, point in enumerate(points)
        if _is_inside(point.latency_ms, max_latency_ms) and _is_inside(point.index_bytes, max_index_bytes)
    ]
    if not within:
        return None
    best = max(within, key=lambda run: (comparison.means[run], -run))
    behind = {run: comparison.get_pair(best, run) for run in within if run != best}
    good = [run for run in within if run == best or not behind[run].significant]
    chosen = min(good, key=lambda run: (*_get_cost(points[run]), -comparison.means[run], run))
    most_lost = 0.0 if chosen == best else _find_most_lost(behind[chosen])
    return Choice(run=chosen, best=best, within=tuple(within), most_lost=most_lost)


def _is_inside(figure: float | None, bound: float | None) -> bool:
    return bound is None or (figure is not None and figure <= bound)


def _get_cost(point: Point) -> tuple[float, float]:
    return (
        math.inf if point.latency_ms is None else point.latency_ms,
        math.inf if point.index_bytes is None else point.index_bytes,
    )


def _find_most_lost(pair: Pair) -> float | None:
    return None if pair.simultaneous is None else max(0.0, pair.simultaneous.high)
