"""Values on the newest version of a dataset: its mappings are resolved for it, its benchmarks re-scored on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from django.contrib.auth.models import User
from django.db.models import Exists, Model, OuterRef, QuerySet

from apps.datasets.models import Dataset, DatasetVersion
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.models import Status
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, Evaluation, Run
from benchbench.access import AnyUser, visible
from benchbench.errors import BenchbenchError
from benchbench.site.history import note

M = TypeVar("M", bound=Model)
AT_ONCE = 10  # benchmarks that one call re-scores, newest first


@dataclass(frozen=True, slots=True)
class Outdated:
    """The mappings and benchmarks of a dataset, visible to a user, that are older than its version `number`."""

    number: int
    mappings: QuerySet[Mapping]
    benchmarks: QuerySet[Benchmark]


def find_outdated(dataset: Dataset, user: AnyUser, number: int) -> Outdated:
    """Return the mappings resolved for earlier versions, and the ranked benchmarks with values only on earlier ones."""
    mappings = visible(Mapping.objects.filter(dataset=dataset, dataset_version__number__lt=number), user)
    completed = Run.objects.filter(benchmark=OuterRef("pk"), status=Run.Status.COMPLETED)
    scored = Evaluation.objects.filter(run__benchmark=OuterRef("pk"), dataset_version__number=number)
    older = Benchmark.objects.filter(
        *(Exists(completed), ~Exists(scored)),
        mapping__dataset=dataset,
        dataset_version__number__lt=number,
        rankings_deleted_at=None,
    )
    benchmarks = visible(older.exclude(status=Status.RUNNING), user)
    return Outdated(number, mappings, benchmarks.select_related("dataset_version", "mapping").order_by("-created_at"))


@dataclass(slots=True)
class Update:
    """The steps that an update took, queued ones too, and those that failed, in sentences."""

    version: DatasetVersion
    steps: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def update_values(version: DatasetVersion, *, by: User) -> Update:
    """Resolve the outdated mappings of the version's dataset for it, and re-score the newest outdated benchmarks on it.

    Acts on what `by` may change; each step is stored by itself, so that a failing one leaves the others. A benchmark
    whose mapping a worker resolves is re-scored by another call afterwards.
    """
    update = Update(version)
    outdated = find_outdated(version.dataset, by, version.number)

    def resolve_one(mapping: Mapping) -> str:
        resolved = resolve(mapping, by=by)
        if resolved.operation is not None:
            return f"A worker resolves the mapping “{mapping}”. Re-score its benchmarks after that."
        counts = f"{resolved.mapping.mapped_count:,} of {resolved.mapping.total_count:,} judgments"
        return f"Resolved the mapping “{mapping}”: {counts} have a document."

    def rescore_one(benchmark: Benchmark) -> str:
        return f"“{benchmark}”: {rescore(benchmark, version=version, by=by).sentence}"

    _act_on_each(update, outdated.mappings, resolve_one, by, "resolve")
    ready = outdated.benchmarks.filter(mapping__dataset_version__number__gte=version.number)
    _act_on_each(update, ready[:AT_ONCE], rescore_one, by, "re-score")
    return update


def _act_on_each(update: Update, rows: QuerySet[M], act: Callable[[M], str], by: User, verb: str) -> None:
    chosen: Sequence[M] = list(rows)
    meta = rows.model._meta
    if chosen and not by.has_perm(f"{meta.app_label}.change_{meta.model_name}"):
        names = ", ".join(f"“{row}”" for row in chosen)
        update.failures.append(f"You may not {verb} {meta.verbose_name_plural}: ask an editor for {names}.")
        return
    for row in chosen:
        try:
            message = act(row)
        except BenchbenchError as error:
            update.failures.append(f"“{row}”: {error.message}")
        else:
            update.steps.append(message)
            note(by, [row], message)
