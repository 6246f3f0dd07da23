"""Descriptions of a benchmark and its runs."""

from django.db.models import Count, Q, QuerySet

from apps.benchmarks.models import Benchmark, Run


def with_run_counts(benchmarks: QuerySet[Benchmark]) -> QuerySet[Benchmark]:
    """Give each benchmark `completed_runs` and `failed_runs`; what only its own page needs is left unread."""
    counts = {
        f"{status}_runs": Count("runs", filter=Q(runs__status=status))
        for status in (Run.Status.COMPLETED.value, Run.Status.FAILED.value)
    }
    return benchmarks.annotate(**counts).defer("manifest", "experiment", "matrix")
