"""Measuring the runs of a benchmark again from stored lists: at once if that is quick, else on the queue.

On the queue each batch measures some runs on one version and stores batch values, as a searching batch does. The end
of the operation stores all evaluations in one transaction, so that a page never mixes old and new measurements.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.datasets.models import DatasetVersion
from apps.mappings.truth import hash_truth
from apps.operations.launching import OperationActiveError, start_operation
from apps.operations.leasing import Lease
from apps.operations.models import MAY_RUN_TWICE, Batch, BatchSpec, Operation, Status
from apps.operations.progress import build_common_fields, compute_progress
from apps.records.lists.reading import group_by_source, load_ranked_documents, require_rankings
from apps.records.measuring.approximations import store_losses
from apps.records.measuring.batch_values import MeasuredValues, delete_values, measure_runs, store_values
from apps.records.measuring.evaluating import evaluate_runs, load_truth
from apps.records.models import Benchmark, Evaluation, Run, StageList
from apps.records.models.batches import MeasuringBatch, MeasuringWork
from benchbench.database.failures import read_again
from benchbench.decimals import counted
from benchbench.errors import ConflictError
from benchbench.ir.measures import Measure, Truths
from benchbench.reading.objects import read_as

RANKINGS = 50_000  # most in a batch


class RescoringError(ConflictError):
    """The runs cannot be measured on that version."""

    code = "cannot_rescore"


def lock_benchmark(benchmark: Benchmark, *, refusal: type[ConflictError] = ConflictError) -> Benchmark:
    """Lock a benchmark to measure it again. Raises `refusal` while it is running, and OperationActiveError."""
    rows = Benchmark.objects.select_for_update(of=("self",)).select_related("mapping", "dataset_version")
    locked = read_again(rows, benchmark.pk)
    if locked.status == Status.RUNNING:
        raise refusal(f"The benchmark {locked.name!r} is running: wait for it, or cancel it first.")
    require_unmeasured(locked)
    require_rankings(locked)
    return locked


def lock_rankings(runs: Iterable[Run]) -> None:
    """Keep the rankings of runs until the transaction ends. Raises RankingsDeletedError."""
    rows = Benchmark.objects.select_for_update(no_key=True).filter(pk__in={run.benchmark_id for run in runs})
    for benchmark in rows.order_by("pk"):
        require_rankings(benchmark)


def require_unmeasured(benchmark: Benchmark) -> None:
    """Raise OperationActiveError while an operation measures a locked benchmark again."""
    if Operation.active_on(benchmark):
        raise OperationActiveError(
            f"The benchmark {benchmark.name!r} is being measured again: wait until that ends, or cancel the operation."
        )


def list_completed_runs(benchmark: Benchmark) -> list[Run]:
    """Return the completed runs of a benchmark in order; these are measured again."""
    return list(benchmark.runs.filter(status=Run.Status.COMPLETED).order_by("run_order"))


def measure_or_queue(
    benchmark: Benchmark, versions: Sequence[DatasetVersion], measures: Sequence[str], *, by: User | None, at_once: bool
) -> list[Evaluation] | Operation:
    """Measure the completed runs of a locked benchmark by `measures`, and return the result of `measure_again`.

    More rankings than BENCHBENCH_MEASURE_AT_ONCE are queued unless `at_once`; then return the operation. Raises
    RescoringError, TruthError and QuotaError.
    """
    runs = list_completed_runs(benchmark)
    rankings = len(runs) * sum(version.query_count for version in versions)
    if at_once or rankings <= settings.BENCHBENCH_MEASURE_AT_ONCE:
        return measure_again(benchmark, versions, measures)
    for version in versions:  # raise now what would fail only at the end
        load_truth(benchmark, version)
        lists = StageList.objects.filter(source__in={run.source_id for run in runs}, lengths__isnull=False)
        if not lists.filter(query__in=version.queries).exists():
            raise _build_error(benchmark, version)
    return start_operation(
        Operation.Kind.MEASURE,
        subject_id=benchmark.pk,
        by=by or benchmark.owner,
        batches=_split_batches(runs, versions),
        parameters={"versions": [version.number for version in versions], "measures": list(measures)},
    )


def measure_again(
    benchmark: Benchmark, versions: Sequence[DatasetVersion], measures: Sequence[str]
) -> list[Evaluation]:
    """Measure the completed runs of a locked benchmark by `measures`, which become its own, and store the results.

    Returns the evaluations on the last version. Raises RescoringError if the runs searched no query of a version.
    """
    if list(measures) != benchmark.measures:
        benchmark.measures = list(measures)
        benchmark.save(update_fields=["measures", "updated_at"])
    runs = list_completed_runs(benchmark)
    evaluations: list[Evaluation] = []
    for version in versions:
        evaluations = evaluate_runs(benchmark, runs, version=version)
        if any(row.unsearched_queries for row in evaluations) and not any(row.query_count for row in evaluations):
            raise _build_error(benchmark, version)
        store_losses(benchmark, runs, evaluations, version)
    return evaluations


def measure_part(batch: Batch, lease: Lease) -> None:
    """Process a batch of the queue: measure its runs on its version, and store their values for the end."""
    payload = read_as(MeasuringBatch, batch.payload)
    benchmark, (version,) = _load_subject(batch.operation, [payload.version])
    names = MeasuringWork.from_operation(batch.operation).measures
    truth = load_truth(benchmark, version)
    truths, query_ids = Truths.from_grades(list(truth.grades.values())), list(truth.grades)
    parsed = [Measure.parse(name) for name in names]
    runs = benchmark.runs.filter(pk__in=payload.runs, status=Run.Status.COMPLETED)
    values_by_run: dict[UUID, MeasuredValues] = {}
    for source_id, sharing in group_by_source(runs).items():
        lease.check()
        values_by_run |= measure_runs(parsed, query_ids, truths, load_ranked_documents(source_id), sharing)
        lease.report(len(values_by_run) * len(query_ids))
    with lease.commit():
        store_values(batch, names, query_ids, values_by_run, hash_truth(truth), was_searched=False)


def finish_measuring(operation: Operation) -> None:
    """Store the values that the batches of an operation measured; measure new and outdated ones here."""
    Benchmark.objects.select_for_update().get(pk=operation.subject_id)  # a launch waits for the end
    work = MeasuringWork.from_operation(operation)
    benchmark, versions = _load_subject(operation, work.versions)
    measure_again(benchmark, versions, list(work.measures))
    delete_values(list_completed_runs(benchmark))


def stop_measuring(operation: Operation) -> None:
    """Delete the batch values of an operation; the runs keep their old evaluations."""
    delete_values(Run.objects.filter(benchmark=operation.subject_id, status=Run.Status.COMPLETED))


def build_event(operation: Operation) -> dict[str, object]:
    """Return the data of a `measuring_progress` event."""
    progress = compute_progress(operation)
    return {
        **build_common_fields(operation),
        "benchmark_id": str(operation.subject_id),
        "versions": list(MeasuringWork.from_operation(operation).versions),
        "stage": progress.stage,
        "total_rankings": progress.total,
        "measured_rankings": progress.done_units,
        "eta_seconds": progress.eta_seconds,
    }


def _build_error(benchmark: Benchmark, version: DatasetVersion) -> RescoringError:
    return RescoringError(f"{benchmark.name!r} searched no query of {version}: create a new benchmark.")


def _split_batches(runs: Sequence[Run], versions: Sequence[DatasetVersion]) -> Iterator[BatchSpec]:
    for version in versions:
        for run_ids in split_runs(runs, version):
            payload = {"version": version.number, "runs": run_ids, MAY_RUN_TWICE: True}
            yield payload, len(run_ids) * version.query_count


def split_runs(runs: Sequence[Run], version: DatasetVersion) -> list[list[str]]:
    """Return the ids of runs in equal parts of at most RANKINGS, or one run; runs of one source are adjacent."""
    ordered = [str(run.pk) for sharing in group_by_source(runs).values() for run in sharing]
    limit = max(1, RANKINGS // max(1, version.query_count))
    size = max(1, math.ceil(len(ordered) / max(1, math.ceil(len(ordered) / limit))))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def _load_subject(operation: Operation, numbers: Sequence[int]) -> tuple[Benchmark, list[DatasetVersion]]:
    """Return the benchmark of an operation, and the versions of its dataset with these numbers."""
    rows = Benchmark.objects.select_related("mapping", "dataset_version")
    benchmark = rows.get(pk=operation.subject_id)
    versions = DatasetVersion.objects.filter(dataset=benchmark.dataset_version.dataset_id, number__in=numbers)
    return benchmark, list(versions.select_related("dataset").order_by("number"))


class UnknownVersionError(RescoringError):
    """The dataset has no such version."""

    code = "unknown_version"
    status = 400


@dataclass(frozen=True, slots=True)
class RescoringResult:
    """The result of re-scoring on a version.

    `unsearched` queries of the version were never searched and are left out of the means. `dropped` queries were
    searched but are not in the version. If the work was queued, only `operation` is set.
    """

    version: DatasetVersion
    evaluations: list[Evaluation]
    unsearched: int = 0
    dropped: int = 0
    operation: Operation | None = None

    @property
    def sentence(self) -> str:
        """Describe the result to the user."""
        if self.operation:
            return f"Measuring on {self.version} is queued; the page shows the old values until it ends."
        runs = len(self.evaluations)
        summary = f"Measured {counted(runs, 'run')} on {self.version} from stored rankings."
        if self.unsearched:
            summary += f" New or reworded queries, left out of the means: {self.unsearched}."
        if self.dropped:
            summary += f" Queries without a value, because the version no longer has them: {self.dropped}."
        return summary


def rescore(
    benchmark: Benchmark, *, version: DatasetVersion | None = None, by: User | None = None, at_once: bool = False
) -> RescoringResult:
    """Measure every completed run of `benchmark` on `version`, by default the newest frozen one, and store the values.

    Measures all runs, so that a page never mixes values against different truths. Values on other versions stay. A new
    or reworded query was never searched: like a failed query it has no value and is left out of the means, and
    `Evaluation.unsearched_queries` counts it. Queries that the version no longer has are left out.

    More rankings than BENCHBENCH_MEASURE_AT_ONCE are queued unless `at_once`, and count against the quota of `by`, by
    default the benchmark's owner. Raises RescoringError, OperationActiveError and QuotaError, and TruthError if the
    mapping is not resolved for the version.
    """
    with transaction.atomic():
        benchmark = lock_benchmark(benchmark, refusal=RescoringError)
        version = version or load_newest_version(benchmark)
        if version.frozen_at is None:
            raise RescoringError(f"{version} is not frozen: freeze it first.", field="version")
        if not list_completed_runs(benchmark):
            raise RescoringError(f"No run of {benchmark.name!r} has completed: run it before you measure it.")
        result = measure_or_queue(benchmark, [version], benchmark.measures, by=by, at_once=at_once)
    if isinstance(result, Operation):
        return RescoringResult(version, [], operation=result)
    unsearched = max(evaluation.unsearched_queries for evaluation in result)
    query_ids = set(benchmark.dataset_version.queries.values_list("pk", flat=True))
    return RescoringResult(version, result, unsearched, dropped=len(query_ids - set(result[0].query_ids)))


def load_newest_version(benchmark: Benchmark) -> DatasetVersion:
    """Return the newest frozen version of the benchmark's dataset."""
    frozen = DatasetVersion.objects.filter(dataset=benchmark.dataset_version.dataset_id, frozen_at__isnull=False)
    return frozen.select_related("dataset").latest("number")


def is_scored(benchmark: Benchmark, version: DatasetVersion) -> bool:
    """Check whether every completed run has values on `version`.

    Without a recorded state of the collection they must be from after the mapping was last resolved.
    """
    resolved_at = benchmark.mapping.resolved_at if benchmark.state is None else None
    values = Evaluation.objects.filter(run=OuterRef("pk"), dataset_version=version)
    newer = values.filter(created_at__gte=resolved_at) if resolved_at else values
    return not benchmark.runs.filter(~Exists(newer), status=Run.Status.COMPLETED).exists()


def find_version(benchmark: Benchmark, number: int) -> DatasetVersion:
    """Return version `number` of the benchmark's dataset. Raises UnknownVersionError if it does not exist."""
    versions = DatasetVersion.objects.filter(dataset=benchmark.dataset_version.dataset_id).select_related("dataset")
    version = versions.filter(number=number).first()
    if version is None:
        numbers = ", ".join(map(str, sorted(versions.values_list("number", flat=True))))
        raise UnknownVersionError(
            f"{benchmark.dataset_version.dataset} has no version {number}; choose one of {numbers}.", field="version"
        )
    return version


def list_scored_versions(benchmark: Benchmark) -> list[DatasetVersion]:
    """Return the versions on which runs of the benchmark have values, oldest first."""
    scored = Evaluation.objects.filter(run__benchmark=benchmark)
    versions = DatasetVersion.objects.filter(pk__in=scored.values("dataset_version"))
    return list(versions.select_related("dataset").order_by("number"))
