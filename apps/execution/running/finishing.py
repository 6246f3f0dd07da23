"""The end of a benchmark's operation: evaluations for completed runs, a reason for the others."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from apps.datasets.models import DatasetVersion
from apps.execution.launching import UNFINISHED
from apps.execution.running.builds import count_builds, load_builds
from apps.execution.running.conclusions import RESULT_FIELDS, Measured, conclude
from apps.execution.running.notes import load_notes
from apps.execution.running.timing import compute_timings, count_calls
from apps.mappings.filters import filter_warnings
from apps.mappings.identity import duplicate_warnings
from apps.operations.leasing import Lease
from apps.operations.models import MAY_RUN_TWICE, Batch, BatchSpec, Operation, Status
from apps.records.measuring.again import list_scored_versions, split_runs
from apps.records.measuring.approximations import (
    measure_approximations,
    store_losses,
)
from apps.records.measuring.batch_values import delete_values
from apps.records.measuring.evaluating import evaluate_runs
from apps.records.models import Benchmark, Evaluation, Run
from apps.records.models.batches import BatchPayload, BenchmarkWork, filter_evaluating
from apps.records.planning import plan_of
from apps.retrieval.unread import list_run_warnings
from benchbench.database.binary import execute_each
from benchbench.database.ordered import delete_in_order, update_in_order

STORE_RESULTS = (
    f"UPDATE {Run._meta.db_table} SET updated_at = now(), {' = %s, '.join(RESULT_FIELDS)} = %s WHERE id = %s"  # nosec # only constants
)


def list_last_batches(operation: Operation) -> list[BatchSpec]:
    """Return the batches in which workers evaluate the runs, unless they exist or the rankings are few."""
    if filter_evaluating(operation).exists():
        return []
    benchmark = load_benchmark(operation)
    groups = split_runs(list(_filter_unfinished(operation, benchmark)), benchmark.dataset_version)
    return [({"evaluate": run_ids, MAY_RUN_TWICE: True}, 0) for run_ids in groups] if len(groups) > 1 else []


def evaluate_batch(batch: Batch, lease: Lease) -> None:
    """Evaluate some of the runs on the benchmark's version, as `finish` would."""
    benchmark = load_benchmark(batch.operation)
    runs = _filter_unfinished(batch.operation, benchmark).filter(pk__in=BatchPayload.from_batch(batch).evaluate)
    with lease.commit():
        evaluate_runs(benchmark, runs, version=benchmark.dataset_version)


def _filter_unfinished(operation: Operation, benchmark: Benchmark) -> QuerySet[Run]:
    return benchmark.runs.filter(pk__in=BenchmarkWork.from_operation(operation).run_ids, status__in=UNFINISHED)


def finish(operation: Operation) -> None:
    """Evaluate the operation's runs and complete the benchmark, or fail it if no run completed."""
    benchmark = load_benchmark(operation)
    runs = list(_filter_unfinished(operation, benchmark).select_related("index__chunk_set", "index__lexical_index"))
    all_runs = [*runs, *benchmark.runs.filter(status=Run.Status.COMPLETED)]
    by_version = _evaluate(operation, benchmark, all_runs)
    evaluations = {evaluation.run_id: evaluation for evaluation in by_version[benchmark.dataset_version]}
    notes = load_notes(benchmark)
    plan = plan_of(runs)
    plans = {run.run_key: run for run in plan.runs}
    by_query = load_builds(benchmark)
    builds = {stage.key: count_builds(by_query, stage.key) for stage in plan.stages}
    by_id = {run.pk: run for run in runs}
    approximations = measure_approximations(operation, by_id, benchmark, plan, notes.queries, builds)
    timings, calls = compute_timings(runs), count_calls(runs)
    searched = _warn_of_data(benchmark) if runs else []
    for run in runs:
        measured = Measured(timings[run.pk], calls[run.pk], evaluations[run.pk], approximations.get(run.pk))
        warnings = [*searched, *(list_run_warnings(run.index, [run.configuration]) if run.index else ())]
        results = conclude(run, plans[str(run.pk)], notes, measured, warnings, ended_at=operation.finished_at)
        results.assign_to(run)
    _store_results(runs)
    for version, version_evaluations in by_version.items():
        store_losses(benchmark, all_runs, version_evaluations, version)
    delete_values(runs)  # the evaluations have them now
    completed = benchmark.runs.filter(status=Run.Status.COMPLETED).exists()
    _end(benchmark, Status.COMPLETED if completed else Status.FAILED)


def _warn_of_data(benchmark: Benchmark) -> list[str]:
    """Return the warnings of queries and documents, which all runs have."""
    searched = benchmark.mapping, benchmark.dataset_version
    duplicates = duplicate_warnings(*searched) if benchmark.identical_texts == "different" else []
    return filter_warnings(*searched) + duplicates


def _evaluate(
    operation: Operation, benchmark: Benchmark, runs: Iterable[Run]
) -> dict[DatasetVersion, list[Evaluation]]:
    """Evaluate all completed runs on every version, so that a page compares equal truths.

    The mapping may have been resolved again since, and a retry adds runs to a benchmark that was re-scored.
    """
    groups = filter_evaluating(operation).values_list("payload__evaluate", flat=True)
    evaluated = [UUID(run_id) for run_ids in groups for run_id in run_ids]
    searched = benchmark.dataset_version
    by_version = {searched: evaluate_runs(benchmark, runs, version=searched, evaluated=evaluated)}
    for version in list_scored_versions(benchmark):
        if version != searched:
            by_version[version] = evaluate_runs(benchmark, runs, version=version)
    return by_version


def _store_results(runs: Iterable[Run]) -> None:
    rows = [
        [*(_encode(getattr(run, name)) for name in RESULT_FIELDS), run.pk] for run in sorted(runs, key=attrgetter("pk"))
    ]
    execute_each(STORE_RESULTS, rows)


def _encode(value: object) -> Any:
    return Jsonb(value) if isinstance(value, dict | list) else value


def stop(operation: Operation) -> None:
    """Cancel or fail the unfinished runs with the operation's error. Launching the benchmark again resumes them."""
    benchmark = load_benchmark(operation)
    status = Run.Status.CANCELLED if operation.status == Status.CANCELLED else Run.Status.FAILED
    unfinished = _filter_unfinished(operation, benchmark)
    # By a batch, or of an earlier attempt. Values on other versions say where to evaluate when the runs are resumed.
    delete_in_order(Evaluation.objects.filter(run__in=unfinished, dataset_version=benchmark.dataset_version))
    update_in_order(unfinished, status=status, error_message=operation.error, completed_at=Now())
    _end(benchmark, Status(operation.status))


def load_benchmark(operation: Operation) -> Benchmark:
    benchmarks = Benchmark.objects.select_related(
        "mapping__collection", "mapping__dataset_version", "dataset_version__dataset"
    )
    return benchmarks.get(pk=operation.subject_id)


def _end(benchmark: Benchmark, status: Status) -> None:
    Benchmark.objects.filter(pk=benchmark.pk).update(status=status, completed_at=Now())
