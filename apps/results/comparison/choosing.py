"""Quality against cost: the frontier of compared runs, and the cheapest that is good enough."""

from dataclasses import dataclass

from apps.benchmarks.models import Run
from apps.results.comparison.comparing import RunComparison
from benchbench.ir.statistics.frontier import Choice, Point, cheapest_not_worse, frontier


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may take at most; None does not bound."""

    latency_ms: float | None = None
    index_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Quality, latency and index size of every run in the order of the comparison, and what follows from them.

    `choice` is None where no run is within the bounds, and where the comparison is against a baseline or not tested:
    only a test of all pairs says what is not significantly worse than the best.
    """

    points: tuple[Point, ...]
    frontier: tuple[int, ...]
    bounds: Bounds
    choice: Choice | None


def costs_of(comparison: RunComparison, bounds: Bounds) -> Costs:
    """Return what the compared runs cost, with the cheapest within `bounds` not significantly worse than the best."""
    points = tuple(
        Point(quality=mean, latency_ms=run.timing.get("total_ms"), index_bytes=index_bytes(run))
        for run, mean in zip(comparison.runs, comparison.comparison.means, strict=True)
    )
    choice = None
    if comparison.tested and comparison.comparison.baseline is None:
        choice = cheapest_not_worse(
            comparison.comparison, points, max_latency_ms=bounds.latency_ms, max_index_bytes=bounds.index_bytes
        )
    return Costs(points=points, frontier=frontier(points), bounds=bounds, choice=choice)


def index_bytes(run: Run) -> float | None:
    """Return the size of what the run searches: its index, and what a store made of it where it uses one."""
    size = run.index.stats.get("bytes") if run.index else None
    if size is None:
        return None
    approximate = run.provenance.get("ann") or {}
    return float(size + (approximate.get("bytes") or 0))
