"""Times of a run's queries by stage, and their calls to models."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, Sum
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import read_rows
from apps.benchmarks.models import Benchmark, Run, StageList
from apps.benchmarks.running.rankings import TIMINGS

Samples = NDArray[np.float64]  # (timings, searches); NaN means not timed
LEAST_FOR_P99 = 100  # with fewer samples the 99th percentile is about the maximum


def compute_timings(runs: Sequence[Run]) -> dict[UUID, dict[str, Any]]:
    """Return each run's latencies over the queries that did not fail, in milliseconds per query.

    `<stage>_ms` are means. Isolated execution, whose samples are single searches, also has `percentiles`:
    {"total_ms": {"p50": …, "p95": …, "p99": …}, …}, with p99 from LEAST_FOR_P99 samples on. With repetitions it has
    `compute_consistency`, the share of queries with the same answer in all of them.
    """
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


def sum_cost_ms(run: Run) -> int | None:
    """Return the total time of a run's successful searches, as if it were alone, in whole milliseconds.

    None if no search was timed. A run has no wall-clock time, because the runs of a benchmark work together.
    """
    mean, samples = run.timing.get("total_ms"), run.timing.get("samples")
    return None if mean is None or samples is None else round(mean * samples)


def find_execution(benchmark: Benchmark, ms: float | None) -> str | None:
    """Return the execution in which a time was taken, "shared" or "isolated"; None without a time.

    A shared time is a share of the time of a stage for several queries and all runs that need it.
    """
    return None if ms is None else str(benchmark.execution)


def mark_shared(runs: Iterable[Run]) -> str:
    """Return the suffix for the unit of these runs' times: " (open loop)", " (shared)", or "" if they are neither."""
    timings = [run.timing for run in runs]
    if any("open_loop" in timing for timing in timings):
        return " (open loop)"
    return " (shared)" if any(timing.get("execution") == Benchmark.Execution.SHARED for timing in timings) else ""


def _build_timing(run: Run, samples: Samples) -> dict[str, Any]:
    timing: dict[str, Any] = {"samples": samples.shape[1], "execution": run.benchmark.execution}
    measured = {name: column[~np.isnan(column)] for name, column in zip(TIMINGS, samples, strict=True)}
    timing |= {name: round(float(column.mean()), 4) for name, column in measured.items() if len(column)}
    if run.benchmark.execution == Benchmark.Execution.ISOLATED:
        timing["percentiles"] = {name: compute_percentiles(column) for name, column in measured.items() if len(column)}
        if run.benchmark.runs_per_query > 1:
            timing["consistency_score"] = compute_consistency(run)
    return timing


def compute_percentiles(samples: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Return p50, p95 and, from LEAST_FOR_P99 samples on, p99: the sample at index min(⌊n·p⌋, n−1), ascending."""
    ordered = np.sort(samples)
    shares = {"p50": 0.5, "p95": 0.95} | ({"p99": 0.99} if len(ordered) >= LEAST_FOR_P99 else {})
    return {name: round(float(ordered[min(int(len(ordered) * p), len(ordered) - 1)]), 4) for name, p in shares.items()}


def compute_consistency(run: Run) -> float:
    """Return the share of queries with equal ranked documents in all repetitions; a failed query is not consistent."""
    by_query: dict[int, list[tuple[str, list[int]]]] = {}
    for query_id, error, documents in run.query_results.values_list("query_id", "error", "document_ids"):
        by_query.setdefault(query_id, []).append((error, documents))
    same = [not first[0] and all(repeat == first for repeat in repeats) for first, *repeats in by_query.values()]
    return sum(same) / len(same) if same else 0.0
