"""Progress of a benchmark: the data of its events (docs/events.md)."""

from collections import Counter
from itertools import takewhile
from typing import Any

from django.db.models import F

from apps.execution.provisional import is_preparing, load_progress
from apps.operations.models import Operation, Status
from apps.operations.progress import build_common_fields, compute_progress
from apps.records.finding import flatten, nest
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.batches import BenchmarkWork
from apps.records.models.progress import RunSums
from benchbench.reading.strict_json import attributes

ENDED = (Run.Status.COMPLETED, Run.Status.FAILED)
AHEAD = (Run.Status.PENDING, Run.Status.INDEXING, Run.Status.EVALUATING)
AT_WORK = {"status": Status.RUNNING.value, "stage": "evaluating", "error": None}  # in the event of each ended run


def build_event(operation: Operation) -> dict[str, Any]:
    """Return the data of `benchmark_progress`: status, counts, the current run, and every run's means so far."""
    benchmark = Benchmark.objects.select_related("mapping", "dataset_version").filter(pk=operation.subject_id).first()
    if benchmark is None:
        return _describe_deleted(operation)
    runs = list(benchmark.runs.all())
    total = benchmark.dataset_version.query_count
    at_work = set(BenchmarkWork.from_operation(operation).run_ids)
    so_far = _compute_progress(benchmark, runs, at_work, *load_progress(operation, total))
    current = next((run for run in runs if run.status not in ENDED and str(run.pk) in at_work), None)
    return {
        **_describe_operation(operation),
        "benchmark_id": str(benchmark.pk),
        "mapping_id": str(benchmark.mapping_id),
        "dataset_id": str(benchmark.mapping.dataset_id),
        "collection_id": str(benchmark.mapping.collection_id),
        "status": find_status(benchmark, operation),
        "total_runs": benchmark.total_runs,
        "completed_runs": sum(run.status == Run.Status.COMPLETED for run in runs),
        "failed_runs": sum(run.status == Run.Status.FAILED for run in runs),
        "primary_k": benchmark.primary_k,
        "weighting": benchmark.weighting,
        "k_values_for_metrics": benchmark.k_values,
        "current_run": _describe_current(current, so_far, total) if current and operation.is_active else None,
        "last_completed_run": None,
        "runs": list(so_far.values()),
    }


def _describe_operation(operation: Operation) -> dict[str, object]:
    progress = compute_progress(operation)
    return {
        **build_common_fields(operation),
        "percent": round(progress.percent, 1),
        "stage": progress.stage,
        "words": progress.words,
        "eta_seconds": progress.eta_seconds,
    }


def _describe_deleted(operation: Operation) -> dict[str, object]:
    """Return the same fields for an operation whose benchmark was deleted; only the operation's own are known."""
    nothing = ("benchmark_id", "mapping_id", "dataset_id", "collection_id", "primary_k", "weighting", "current_run")
    return {
        **_describe_operation(operation),
        **dict.fromkeys((*nothing, "last_completed_run")),
        **dict.fromkeys(("total_runs", "completed_runs", "failed_runs"), 0),
        "k_values_for_metrics": [],
        "runs": [],
        "stage": "starting" if operation.is_active else "completed",
    }


def find_status(benchmark: Benchmark, operation: Operation) -> str:
    """Return the status of the benchmark with regard to this operation.

    If the operation completed but all runs failed, the status is failed. If the benchmark was started again, which is
    another operation, the status of this one stays.
    """
    of_benchmark = benchmark.status if benchmark.status not in Status.active() else operation.status
    return of_benchmark if operation.status == Status.COMPLETED else operation.status


def find_stage(operation: Operation) -> str:
    """Return the stage of a benchmark's operation: starting, indexing, evaluating, or completed in any way."""
    if not operation.is_active:
        return "completed"
    if operation.started_at is None:
        return "starting"
    return "indexing" if is_preparing(operation) else "evaluating"


def list_completions(operation: Operation, after: int) -> list[tuple[int, dict[str, Any]]]:
    """Return (run_order, event data with final means) for the runs of this operation that ended after run `after`.

    A run that ended early, for example because its index could not be made, waits until the runs before it have ended.
    Runs that share work end together; each still gets an event of its own before the end of the operation, so that a
    reader who stops there has seen all. `runs` holds that run alone: with all runs, the size of the messages would be
    quadratic in their number.
    """
    runs = list(Run.objects.filter(pk__in=BenchmarkWork.from_operation(operation).run_ids).order_by("run_order"))
    in_turn = takewhile(lambda run: run.status not in AHEAD, runs)
    ended = [run for run in in_turn if run.status in ENDED and run.run_order > after]
    evaluations = Evaluation.objects.filter(run__in=ended, dataset_version=F("run__benchmark__dataset_version"))
    means = dict(evaluations.order_by("created_at").values_list("run_id", "means"))
    status_counts = Counter(Run.objects.filter(benchmark=operation.subject_id).values_list("status", flat=True))
    status_counts.subtract(run.status for run in ended)
    so_far = {facts["run_id"]: facts for facts in build_event(operation)["runs"]} if ended else {}
    events = []
    for run in ended:
        status_counts[run.status] += 1
        data = {
            **AT_WORK,
            "completed_runs": status_counts[Run.Status.COMPLETED],
            "failed_runs": status_counts[Run.Status.FAILED],
            "last_completed_run": _describe_completed(run, means.get(run.pk, {})),
            "runs": [so_far[str(run.pk)]],
        }
        events.append((run.run_order, data))
    return events


def _describe_completed(run: Run, means: dict[str, float | None]) -> dict[str, object]:
    metrics = flatten(means) if run.status == Run.Status.COMPLETED else {}
    return {
        **_describe_run(run),
        "status": run.status,
        "metrics": nest(metrics),
        "metrics_flat": metrics,
        "error_message": run.error_message or None,
        "timing": attributes(run.times, "search_ms", "rerank_ms", "total_ms", "execution"),
    }


def _describe_current(run: Run, so_far: dict[str, dict[str, object]], total: int) -> dict[str, object]:
    return {
        **_describe_run(run),
        "total_queries": total,
        "completed_queries": so_far.get(str(run.pk), {}).get("completed_queries", 0),
        "stage": run.status,
    }


def _describe_run(run: Run) -> dict[str, object]:
    return {"run_id": str(run.pk), **attributes(run, "run_order", "config"), "config_summary": run.label}


def _compute_progress(
    benchmark: Benchmark, runs: list[Run], at_work: set[str], before: int, sums: dict[str, RunSums]
) -> dict[str, dict[str, object]]:
    """Return the queries completed and the means over them, for each run of this operation."""
    result = {}
    for run in runs:
        if str(run.pk) not in at_work:
            continue
        entry = sums.get(str(run.pk), RunSums())
        names = benchmark.measures[: len(entry.sums)]  # measures added later follow these
        means = {name: total / n if n else None for name, total, n in zip(names, entry.sums, entry.valued, strict=True)}
        result[str(run.pk)] = {
            "run_id": str(run.pk),
            "completed_queries": before + entry.completed,
            "n": entry.counted,
            "metrics_flat": flatten(means) if entry.counted and run.status != Run.Status.CANCELLED else {},
        }
    return result
