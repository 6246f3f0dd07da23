"""Times of a run's queries by stage, and their calls to models."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, Sum
from numpy.typing import NDArray

from apps.records.models import Benchmark, Run, StageList
from apps.records.models.timing import TIMINGS, OpenLoop, Timing
from benchbench.database.binary import read_rows

Samples = NDArray[np.float64]  # (timings, searches); NaN means not timed
LEAST_FOR_P99 = 100  # with fewer samples the 99th percentile is about the maximum
PERCENTS = {"p50": 50, "p95": 95, "p99": 99}


def compute_timings(runs: Sequence[Run]) -> dict[UUID, Timing]:
    """Return the times of each run's queries that did not fail; `add_loop` adds an open loop."""
    sources = {run.source_id for run in runs}  # runs of one source share their times
    answered = StageList.objects.filter(source__in=sources, lengths__isnull=False, error="").order_by()
    columns = {f"{name}_samples": ArrayAgg(name) for name in TIMINGS}
    rows = read_rows(answered.values_list("source_id").annotate(**columns))
    by_source = {source_id: np.array(samples, np.float64) for source_id, *samples in rows}
    nothing = np.empty((len(TIMINGS), 0))
    return {run.pk: _build_timing(run, by_source.get(run.source_id, nothing)) for run in runs}


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The logical calls of a run as if alone, in all repetitions, and the number of queries with a fallback."""

    embed: int = 0
    llm: int = 0
    fallbacks: int = 0


def count_calls(runs: Sequence[Run]) -> dict[UUID, CallTotals]:
    """Return the calls of each run."""
    lists = StageList.objects.filter(source__in={run.source_id for run in runs}, lengths__isnull=False).order_by()
    fell_back = Count("query", filter=Q(fallback_used=True), distinct=True)
    sums = lists.values("source_id").annotate(embed=Sum("embed_calls"), llm=Sum("llm_calls"), fallbacks=fell_back)
    totals: dict[int | None, CallTotals] = {
        row["source_id"]: CallTotals(row["embed"] or 0, row["llm"] or 0, row["fallbacks"]) for row in sums
    }
    return {run.pk: totals.get(run.source_id, CallTotals()) for run in runs}


def find_execution(benchmark: Benchmark, ms: float | None) -> str | None:
    """Return the execution in which a time was taken, "shared" or "isolated"; None without a time.

    A shared time is a share of the time of a stage for several queries and all runs that need it.
    """
    return None if ms is None else str(benchmark.execution)


def mark_shared(runs: Iterable[Run]) -> str:
    """Return the suffix for the unit of these runs' times: " (open loop)", " (shared)", or "" if they are neither."""
    timings = [run.times for run in runs]
    if any(looped := [times.open_loop is not None for times in timings]):
        return " (open loop)" if all(looped) else " (at a rate: open loop)"
    return " (shared)" if any(times.is_shared for times in timings) else ""


def name_search_ms(runs: Iterable[Run]) -> str:
    """Return the name of these runs' `Timing.typical_search_ms`."""
    names = {
        "": "median ms of search",
        " (shared)": "mean ms of search (shared)",
        " (open loop)": "median ms of latency (open loop)",
    }
    return names.get(mark_shared(runs), "median ms of search, at a rate of latency (open loop)")


def add_loop(times: Timing, loop: OpenLoop, *, is_whole: bool) -> Timing:
    """Return a run's latencies with those of its open loop, whose answers are then the samples of the total.

    `total_ms` and its percentiles count from when each of these queries was due. `<stage>_ms` remain the mean service
    times of each query's first answer, without waiting. Without `is_whole` the loop had a part of each search only.
    Then, and if nothing was answered, the total is unknown.
    """
    stages = replace(times, total_ms=None, percentiles=None, open_loop=loop)
    if not (is_whole and loop.requests):
        return stages
    latency = loop.latency_ms
    percentiles = {"total_ms": {name: latency[name] for name in PERCENTS if name in latency}}
    return replace(stages, total_ms=latency["mean"], percentiles=percentiles, samples=loop.requests)


def _build_timing(run: Run, samples: Samples) -> Timing:
    all_columns = {name: column[~np.isnan(column)] for name, column in zip(TIMINGS, samples, strict=True)}
    columns = {name: column for name, column in all_columns.items() if len(column)}
    means = {name: round(float(column.mean()), 4) for name, column in columns.items()}
    times = Timing.from_dict({"samples": samples.shape[1], "execution": run.benchmark.execution, **means})
    if run.benchmark.execution != Benchmark.Execution.ISOLATED:
        return times
    consistency = compute_consistency(run) if run.benchmark.runs_per_query > 1 else None
    percentiles = {name: compute_percentiles(column) for name, column in columns.items()}
    return replace(times, percentiles=percentiles, consistency_score=consistency)


def compute_percentiles(samples: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Return the samples of `list_ranks`: p50, p95 and perhaps p99."""
    ordered = np.sort(samples)
    return {name: round(float(ordered[rank - 1]), 4) for name, rank in list_ranks(len(ordered)).items()}


def list_ranks(count: int) -> dict[str, int]:
    """Return the rank, from 1, of p50, p95 and, from LEAST_FOR_P99 samples on, p99 among `count` samples.

    It is the nearest rank ⌈count · p⌉, as NumPy's `inverted_cdf`: the least sample that so many do not exceed.
    """
    percents = PERCENTS.items() if count >= LEAST_FOR_P99 else list(PERCENTS.items())[:-1]
    return {name: max(1, -(-count * percent // 100)) for name, percent in percents}


def compute_consistency(run: Run) -> float:
    """Return the share of queries with equal ranked documents in all repetitions; a failed query is not consistent."""
    by_query: dict[int, list[tuple[str, list[int]]]] = {}
    for query_id, error, documents in run.query_results.values_list("query_id", "error", "document_ids"):
        by_query.setdefault(query_id, []).append((error, documents))
    same = [not first[0] and all(repeat == first for repeat in repeats) for first, *repeats in by_query.values()]
    return sum(same) / len(same) if same else 0.0
