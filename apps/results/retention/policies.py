"""Policies of retention: the rows that each names after its days, without those that something still needs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.accounts.models import Deletion
from apps.engines.models import EngineAnswer
from apps.execution.launching import UNFINISHED
from apps.judging.models import Round, RoundRun
from apps.operations.models import Operation, Status
from apps.records.models import Baseline, BatchValues, Benchmark, Run, StageList
from apps.retrieval.models import CachedVector, Index, LLMAnswer, VectorSpace
from apps.verdicts.schedules.jobs import filter_ended
from benchbench.database.bin import list_needed

Find = Callable[[datetime], QuerySet[Any]]
HAS_OPERATION = Exists(Operation.objects.filter(subject_id=OuterRef("pk"), status__in=Status.active()))
RANKED = Exists(StageList.objects.filter(source__benchmark=OuterRef("pk"), error=""))


def find_rankings(before: datetime) -> QuerySet[Benchmark]:
    """Return the benchmarks with rankings that ended before a time and that nothing can continue or read again.

    Those of current baselines, judging rounds, schedules and undecided gates stay, and those of external runs, which
    cannot be searched again. A benchmark whose rankings were
    only deleted in part is among them.
    """
    ended = Benchmark.objects.filter(status__in=(Status.COMPLETED, Status.FAILED), completed_at__lt=before)
    runs = Run.objects.filter(benchmark=OuterRef("pk"))
    needed = (
        Exists(runs.filter(Q(status__in=UNFINISHED) | Q(is_external=True)))
        | Exists(Baseline.objects.filter(run__benchmark=OuterRef("pk"), retired_at=None))
        | Exists(RoundRun.objects.filter(run__benchmark=OuterRef("pk")))
        | Exists(filter_ended().filter(benchmark=OuterRef("pk")))
        | HAS_OPERATION
    )
    unneeded = ended.filter(~needed, schedules=None, rankings_deleted_at=None)
    begun = Benchmark.objects.filter(rankings_deleted_at__isnull=False)
    return Benchmark.objects.filter(RANKED, Q(pk__in=unneeded.values("pk")) | Q(pk__in=begun.values("pk")))


def find_indexes(before: datetime) -> QuerySet[Index]:
    """Return the indexes last changed before a time that no run searches, and no schedule may search as the newest.

    Those of imported vectors stay, which cannot be built again here, and those of runs in the bin.
    """
    scheduled = Run.objects.filter(
        Q(index__name=OuterRef("name")) | Q(config__index=None),  # None: the newest of any name
        benchmark__schedules__isnull=False,
        index__collection=OuterRef("collection"),
    )
    unused = Index.objects.filter(~Exists(scheduled), ~HAS_OPERATION, runs=None, vector_source="")
    return unused.filter(updated_at__lt=before).exclude(pk__in=list_needed(Run, "index_id"))


def find_operations(before: datetime) -> QuerySet[Operation]:
    """Return the operations that ended before a time, without those of benchmarks that can be resumed or retried.

    The provenance of such a benchmark is read from all its batches once it ends.
    """
    ended = Operation.objects.exclude(status__in=Status.active()).filter(finished_at__lt=before)
    resumable = Run.objects.filter(~Q(status=Run.Status.COMPLETED) | Q(failed_queries__gt=0))
    open_benchmarks = Benchmark.objects.filter(
        Q(pk__in=resumable.values("benchmark")) | ~Q(status__in=(Status.COMPLETED, Status.FAILED)),
        pk=OuterRef("subject_id"),
        rankings_deleted_at=None,
    )
    return ended.filter(~Exists(open_benchmarks), ~Exists(BatchValues.objects.filter(batch__operation=OuterRef("pk"))))


def find_vectors(before: datetime) -> QuerySet[CachedVector]:
    """Return the cached vectors of documents last used before a time. Those of queries and imported ones stay."""
    return CachedVector.objects.filter(used_at__lt=before, pinned=False, space__kind=VectorSpace.Kind.DOCUMENT)


def find_llm_answers(before: datetime) -> QuerySet[LLMAnswer]:
    return LLMAnswer.objects.filter(used_at__lt=before)


def find_engine_answers(before: datetime) -> QuerySet[EngineAnswer]:
    """Return the answers asked for before a time; none while a round is open, whose judges may see their snippets."""
    return EngineAnswer.objects.filter(~Exists(Round.objects.filter(state=Round.State.OPEN)), asked_at__lt=before)


def find_deletions(before: datetime) -> QuerySet[Deletion]:
    """Return the deletions that can no longer be taken back. Each has its time: a shorter setting is for later ones."""
    return Deletion.objects.filter(until__lt=timezone.now())


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that keeps rows for the days of a setting. `find` returns those to delete, older than a time."""

    name: str
    setting: str
    find: Find
    exceptions: str  # what stays although it is older

    @property
    def days(self) -> int:
        return int(getattr(settings, self.setting))

    def find_due(self) -> QuerySet[Any]:
        """Return the rows that the policy deletes now; none if it keeps them for ever."""
        rows = self.find(timezone.now() - timedelta(days=self.days))
        return rows if self.days or rows.model is Deletion else rows.none()


CACHES = "BENCHBENCH_KEEP_CACHES_DAYS"
POLICIES = (
    Policy(
        "Rankings of ended benchmarks",
        "BENCHBENCH_KEEP_RANKINGS_DAYS",
        find_rankings,
        "values of all queries; rankings of external runs, current baselines, judging rounds, schedules and unfinished "
        "benchmarks",
    ),
    Policy(
        "Indexes that no run searches",
        "BENCHBENCH_KEEP_INDEXES_DAYS",
        find_indexes,
        "those that a schedule names, of runs in the bin, or of imported vectors",
    ),
    Policy("Cached document vectors", CACHES, find_vectors, "vectors of queries, and imported ones"),
    Policy("Cached answers of language models", CACHES, find_llm_answers, "–"),
    Policy("Cached answers of engines", CACHES, find_engine_answers, "all while a judging round is open"),
    Policy(
        "Ended operations with their batches",
        "BENCHBENCH_KEEP_OPERATIONS_DAYS",
        find_operations,
        "those of benchmarks that can be resumed or retried",
    ),
    Policy("Deleted rows in the bin", "BENCHBENCH_KEEP_DELETED_DAYS", find_deletions, "–"),
)
