"""Payloads and results of the batches of a benchmark, read and written as records."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from apps.operations.models import Batch, Operation
from apps.records.models.benchmarks import Benchmark
from apps.records.models.progress import RunShare
from benchbench.reading.objects import Listed, StrictRecord, read_as

StageNotes = dict[str, Any]  # by name: a number, or a list; see `note`
PREPARE: dict[str, object] = {"prepare": True}  # payload of the batch that makes the missing indexes


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkWork(StrictRecord):
    """The parameters of an operation that runs a benchmark: the runs that it makes."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    run_ids: Listed[str]

    @classmethod
    def from_operation(cls, operation: Operation) -> "BenchmarkWork":
        return read_as(cls, operation.parameters)


@dataclass(frozen=True, slots=True)
class MeasuringWork(StrictRecord):
    """The parameters of an operation that measures again: the numbers of the versions, and the measures."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    versions: Listed[int]
    measures: Listed[str]

    @classmethod
    def from_operation(cls, operation: Operation) -> "MeasuringWork":
        return read_as(cls, operation.parameters)


@dataclass(frozen=True, slots=True)
class MeasuringBatch(StrictRecord):
    """The work of a batch that measures again: to measure runs on the version of a number."""

    IGNORES_OTHERS: ClassVar[bool] = True  # how it is to be run is of the operations

    version: int
    runs: Listed[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPayload(StrictRecord):
    """The work of a batch: to prepare indexes, to search queries, or to evaluate runs.

    Batches that search have `runs` if other batches search the same queries for other runs.
    """

    IGNORES_OTHERS: ClassVar[bool] = True  # how it is to be run is of the operations

    prepare: bool = False
    evaluate: Listed[str] = ()
    query_ids: Listed[int] = ()
    runs: Listed[str] | None = None

    @classmethod
    def from_batch(cls, batch: Batch) -> "BatchPayload":
        return read_as(cls, batch.payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """The result of a batch that searched: its environment, builds and notes by stage, and shares by run id."""

    made_by: dict[str, Any]
    builds: dict[str, str]
    runs: Mapping[str, RunShare]
    notes: Mapping[str, StageNotes]

    def as_dict(self) -> dict[str, Any]:
        runs = dump_shares(self.runs)
        return {"made_by": self.made_by, "builds": self.builds, "runs": runs, "notes": self.notes}


def dump_shares(shares: Mapping[str, RunShare]) -> dict[str, object]:
    return {run_id: asdict(share) for run_id, share in shares.items()}


def read_shares(runs: Mapping[str, Any] | None) -> dict[str, RunShare]:
    """Return the shares of a result by run id; empty for one without."""
    return {run_id: RunShare(**share) for run_id, share in (runs or {}).items()}


def _filter_reports(benchmark: Benchmark) -> QuerySet[Batch]:
    """Return the batches that reported, also of earlier operations, in the order of their creation."""
    of_benchmark = Batch.objects.filter(operation__subject_id=benchmark.pk, state=Batch.State.DONE)
    return of_benchmark.filter(result__has_key="made_by").order_by("pk")


def load_reports(benchmark: Benchmark) -> Iterator[BatchReport]:
    """Yield the reports of all done batches of a benchmark."""
    names = ("result__made_by", "result__builds", "result__runs", "result__notes")
    for made_by, builds, runs, notes in _filter_reports(benchmark).values_list(*names).iterator():
        yield BatchReport(made_by=made_by, builds=builds or {}, runs=read_shares(runs), notes=notes)


def list_noted_stages(benchmark: Benchmark, name: str, query_id: int) -> set[str]:
    """Return the keys of the stages with a note of this name on a query."""
    batches = _filter_reports(benchmark).filter(payload__query_ids__contains=[query_id])
    notes = [each or {} for each in batches.values_list("result__notes", flat=True)]
    return {stage for each in notes for stage, by_name in each.items() if query_id in by_name.get(name, ())}


def load_searched_builds(benchmark: Benchmark) -> Iterator[tuple[dict[str, str], list[int]]]:
    """Yield the builds by stage that each batch of a benchmark searched, and its queries."""
    batches = _filter_reports(benchmark).filter(result__has_key="builds").exclude(result__builds={})
    yield from batches.values_list("result__builds", "payload__query_ids")


def filter_evaluating(operation: Operation) -> QuerySet[Batch]:
    return operation.batches.filter(payload__has_key="evaluate")


def filter_preparing(operation: Operation) -> QuerySet[Batch]:
    return operation.batches.filter(payload__prepare=True)


def load_prepared(operation: Operation) -> dict[str, dict[str, object]]:
    """Return the facts about each index that an operation prepared, by stage key."""
    return filter_preparing(operation).values_list("result__prepared", flat=True).first() or {}


def load_devices(operations: Iterable[Operation]) -> dict[UUID, str | None]:
    """Return the device of the batch of each operation that started last among those that reported, by its id.

    It reads the result of that batch alone, however many there are.
    """
    reports = Batch.objects.filter(operation=OuterRef("pk"), result__has_key="made_by").order_by("-started_at")
    device = Subquery(reports.values("result__made_by__device")[:1])
    working = Operation.objects.filter(pk__in=[operation.pk for operation in operations])
    return dict(working.values_list("pk", device))
