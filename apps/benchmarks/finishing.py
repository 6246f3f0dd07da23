"""What becomes of a benchmark when its operation ends: means for what completed, a reason for what did not."""

from django.db.models import Count, Q
from django.db.models.functions import Now

from apps.benchmarks.evaluating import evaluate_runs
from apps.benchmarks.launching import UNFINISHED
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.progress import partials
from apps.benchmarks.provenance import provenance_of
from apps.benchmarks.timing import timing_of
from apps.operations.models import Operation, Status

RESULT_FIELDS = ("timing", "failed_queries", "provenance", "warnings", "status", "error_message", "completed_at")


def finish(operation: Operation) -> None:
    """Evaluate the operation's runs and complete the benchmark; failed if no run of it completed."""
    benchmark = benchmark_of(operation)
    runs = list(benchmark.runs.filter(pk__in=operation.parameters["run_ids"], status__in=UNFINISHED))
    short = short_queries(operation)
    evaluations = {evaluation.run_id: evaluation for evaluation in evaluate_runs(benchmark, runs)}
    for run in runs:
        run.timing, run.failed_queries = timing_of(run), evaluations[run.pk].failed_queries
        run.provenance = provenance_of(run)
        run.warnings = _warnings(benchmark, run, short.get(str(run.pk), 0))
        answered = run.query_results.filter(error="").exists()
        run.status = Run.Status.COMPLETED if answered or not evaluations[run.pk].query_ids else Run.Status.FAILED
        if run.status == Run.Status.FAILED:
            first = run.query_results.exclude(error="").values_list("error", flat=True).first()
            run.error_message = f"Every query failed; the first: {first}"
        run.completed_at = operation.finished_at
        run.save(update_fields=[*RESULT_FIELDS, "updated_at"])
    completed = benchmark.runs.filter(status=Run.Status.COMPLETED).exists()
    _end(benchmark, Status.COMPLETED if completed else Status.FAILED)


def stop(operation: Operation) -> None:
    """Cancel or fail the unfinished runs with the operation's error. Their rows stay: starting again resumes them."""
    benchmark = benchmark_of(operation)
    status = Run.Status.CANCELLED if operation.status == Status.CANCELLED else Run.Status.FAILED
    unfinished = benchmark.runs.filter(pk__in=operation.parameters["run_ids"], status__in=UNFINISHED)
    unfinished.update(status=status, error_message=operation.error, completed_at=Now())
    _end(benchmark, Status(operation.status))


def benchmark_of(operation: Operation) -> Benchmark:
    return Benchmark.objects.select_related("mapping", "dataset_version").get(pk=operation.subject_id)


def short_queries(operation: Operation) -> dict[str, int]:
    """Return per run in how many queries the cut at top_k left too few documents, though more had been found."""
    counts: dict[str, int] = {}
    for result in partials(operation):
        for run_id, part in result.items():
            counts[run_id] = counts.get(run_id, 0) + part.get("short", 0)
    return counts


def _warnings(benchmark: Benchmark, run: Run, short: int) -> list[str]:
    warnings = []
    if short:
        warnings.append(
            f"In {short} queries the first {run.config['top_k']} chunks hold fewer than {max(benchmark.k_values)} "
            "documents, though more were found: raise top_k."
        )
    if run.failed_queries:
        warnings.append(f"{run.failed_queries} queries failed and are left out of the means.")
    return warnings


def _end(benchmark: Benchmark, status: Status) -> None:
    Benchmark.objects.filter(pk=benchmark.pk).update(status=status, completed_at=Now())


def failed_and_completed(benchmark: Benchmark) -> dict[str, int]:
    """Return how many runs completed and how many failed."""
    return benchmark.runs.aggregate(
        completed_runs=Count("pk", filter=Q(status=Run.Status.COMPLETED)),
        failed_runs=Count("pk", filter=Q(status=Run.Status.FAILED)),
    )
