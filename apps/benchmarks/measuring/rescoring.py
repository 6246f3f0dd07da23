"""Re-scoring finished runs on another version of their dataset, from stored rankings. Nothing is searched."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.benchmarks.measuring.again import RescoringError, completed_runs, locked_benchmark, measure_or_queue
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.datasets.models import DatasetVersion
from apps.operations.models import Operation
from benchbench.decimals import counted


class UnknownVersionError(RescoringError):
    """The dataset has no such version."""

    code = "unknown_version"
    status = 400


@dataclass(frozen=True, slots=True)
class Rescored:
    """What came of it. `unsearched`: queries of the version that the runs were never asked, left out of the means;
    `dropped`: queries that they were asked and that the version does not have. Where it is left to the queue there is
    the `operation`, and nothing else yet."""

    version: DatasetVersion
    evaluations: list[Evaluation]
    unsearched: int = 0
    dropped: int = 0
    operation: Operation | None = None

    @property
    def sentence(self) -> str:
        """What was done, for the reader."""
        if self.operation:
            return f"Measuring on {self.version} is on the queue; until it ends, the page has what it had."
        runs = len(self.evaluations)
        told = f"Measured {counted(runs, 'run')} on {self.version}; nothing was searched."
        if self.unsearched:
            told += f" Not searched, and left out of the means: new or reworded queries, {self.unsearched}."
        if self.dropped:
            told += f" Without a value, because the version no longer has them: {self.dropped} of their queries."
        return told


def rescore(
    benchmark: Benchmark, *, version: DatasetVersion | None = None, by: User | None = None, at_once: bool = False
) -> Rescored:
    """Measure every completed run of `benchmark` on `version` (the newest frozen one by default), and store that.

    All of them, so that one page never holds together what was measured against different truths. Values on other
    versions stay. A query that is new in the version, or reworded, was never searched: it has no value, is left out
    of the means like one that failed, and counted (`Evaluation.unsearched_queries`); never is it a zero. A query that
    the version no longer has is left out. More rankings than BENCHBENCH_MEASURE_AT_ONCE are measured on the queue,
    unless `at_once`, and count against the quota of `by`, or of the benchmark's owner.
    Raises RescoringError; OperationActiveError; QuotaError; TruthError where the mapping is not resolved for it.
    """
    with transaction.atomic():
        benchmark = locked_benchmark(benchmark, refusal=RescoringError)
        version = version or newest_version(benchmark)
        if version.frozen_at is None:
            raise RescoringError(f"{version} may still change: freeze it first.", field="version")
        if not completed_runs(benchmark):
            raise RescoringError(f"No run of {benchmark.name!r} has completed: there is nothing to measure.")
        made = measure_or_queue(benchmark, [version], benchmark.measures, by=by, at_once=at_once)
    if isinstance(made, Operation):
        return Rescored(version, [], operation=made)
    unsearched = max(evaluation.unsearched_queries for evaluation in made)
    asked = set(benchmark.dataset_version.queries.values_list("pk", flat=True))
    return Rescored(version, made, unsearched, dropped=len(asked - set(made[0].query_ids)))


def newest_version(benchmark: Benchmark) -> DatasetVersion:
    """Return the newest frozen version of the benchmark's dataset."""
    frozen = DatasetVersion.objects.filter(dataset=benchmark.dataset_version.dataset_id, frozen_at__isnull=False)
    return frozen.select_related("dataset").latest("number")


def is_scored(benchmark: Benchmark, version: DatasetVersion) -> bool:
    """Tell whether every completed run has values on `version` that are as new as what the mapping resolved."""
    resolved_at = benchmark.mapping.resolved_at
    values = Evaluation.objects.filter(run=OuterRef("pk"), dataset_version=version)
    newer = values.filter(created_at__gte=resolved_at) if resolved_at else values
    return not benchmark.runs.filter(~Exists(newer), status=Run.Status.COMPLETED).exists()


def find_version(benchmark: Benchmark, number: int) -> DatasetVersion:
    """Return version `number` of the benchmark's dataset. Raises UnknownVersionError where there is none."""
    versions = DatasetVersion.objects.filter(dataset=benchmark.dataset_version.dataset_id).select_related("dataset")
    version = versions.filter(number=number).first()
    if version is None:
        there = ", ".join(map(str, sorted(versions.values_list("number", flat=True))))
        raise UnknownVersionError(
            f"{benchmark.dataset_version.dataset} has no version {number}; there are: {there}.", field="version"
        )
    return version


def scored_versions(benchmark: Benchmark) -> list[DatasetVersion]:
    """Return the versions on which runs of the benchmark have values, oldest first."""
    scored = Evaluation.objects.filter(run__benchmark=benchmark)
    versions = DatasetVersion.objects.filter(pk__in=scored.values("dataset_version"))
    return list(versions.select_related("dataset").order_by("number"))
