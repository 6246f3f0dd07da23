"""Runs: looked up by id or name; their means under wire names; the warnings that they share."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Q, QuerySet

from apps.records.models import Benchmark, Run
from benchbench.decimals import list_some
from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Measure
from benchbench.names import find_by_id, find_named


def find_subject(name_or_id: str, *, run: int | str | None = None) -> Run | Benchmark:
    """Return the run with the id `name_or_id`, else the benchmark with this name or id, or its run number `run`."""
    runs = find_by_id(Run.objects.select_related("benchmark"), name_or_id)
    if runs and run is not None:
        raise BenchbenchError("--run needs a benchmark, not a run: give the benchmark, or leave --run out.")
    if runs:
        return runs[0]
    benchmark = find_named(Benchmark, name_or_id)
    return find_run(benchmark, run) if isinstance(run, int) else benchmark


def find_run(benchmark: Benchmark, order: int) -> Run:
    """Return the run of a benchmark by its place in the matrix, from 1."""
    run = benchmark.runs.filter(run_order=order).first()
    if run is None:
        last = benchmark.total_runs
        raise BenchbenchError(f'The benchmark "{benchmark}" has no run {order}; choose 1 to {last}.', field="run")
    return run


MOST_LABELS = 3  # before a warning that several runs have
GROUPED = ("ndcg", "precision", "recall")


def add_run_counts(benchmarks: QuerySet[Benchmark]) -> QuerySet[Benchmark]:
    """Annotate benchmarks with `completed_runs` and `failed_runs`, and defer fields that only their own page needs."""
    counts = {
        f"{status}_runs": Count("runs", filter=Q(runs__status=status))
        for status in (Run.Status.COMPLETED.value, Run.Status.FAILED.value)
    }
    return benchmarks.annotate(**counts).defer("matrix")


def flatten(means: Mapping[str, float | None]) -> dict[str, float | None]:
    return {Measure.parse(name).wire: value for name, value in means.items()}


def nest(metrics: dict[str, float | None]) -> dict[str, object]:
    """Group flat wire metrics of the usual families: {"ndcg": {"10": …}, "mrr": …}.

    Other measures keep their names, such as `Judged@10`.
    """
    result: dict[str, Any] = {}
    for name, value in metrics.items():
        base, _, cutoff = name.partition("@")
        if base in GROUPED:
            result.setdefault(base, {})[cutoff] = value
        else:
            result[name] = value
    return result


def describe_warnings(runs: Sequence[Run], labels: Sequence[str]) -> list[str]:
    """Return each warning of runs once, after the labels of the runs that have it."""
    return group_warnings([run.warnings for run in runs], labels)


def group_warnings(warnings: Sequence[Sequence[str]], labels: Sequence[str]) -> list[str]:
    """Return each warning once, after the labels that have it; `warnings` has those of each label."""
    by_warning: dict[str, list[str]] = {}
    for each, label in zip(warnings, labels, strict=True):
        for warning in dict.fromkeys(each):
            by_warning.setdefault(warning, []).append(label)
    return [
        f"{'All runs' if len(names) == len(labels) > 1 else list_some(names, MOST_LABELS, ', ')}: {warning}"
        for warning, names in by_warning.items()
    ]
