"""Progress of an operation: units done, remaining time, the reason why it waits, and a snapshot of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import DurationField, ExpressionWrapper, Min, Q, Sum
from django.db.models.functions import Now

from apps.operations import queueing
from apps.operations.handlers import find_handler
from apps.operations.models import Batch, Operation, Status
from apps.operations.waiting import describe_wait
from benchbench.durations import estimate_left
from benchbench.timestamps import timestamp


@dataclass(frozen=True, slots=True)
class Progress:
    """Units of work done and in all, and the remaining seconds by the plan and the rate: None without either.

    Batches without units, which prepare others, do not count in the rate.
    """

    done_units: int
    total: int
    eta_seconds: float | None
    units: str = "units"
    stage: str = ""
    more_units: str = ""

    @property
    def stage_words(self) -> str:
        return self.stage.replace("_", " ")

    @property
    def percent(self) -> float:
        return 100.0 * self.done_units / self.total if self.total else 0.0

    @property
    def words(self) -> str:
        """Percent and units, as pages, terminals and events state them after the stage.

        "17.8 %, 3,200 of 18,000 rankings; reranking 3,200 of at most 18,000 pairs"
        """
        counts = f", {self.done_units:,} of {self.total:,} {self.units}" if self.units and self.total > 1 else ""
        return "; ".join(filter(None, (f"{self.percent:.1f} %{counts}", self.more_units)))


def compute_progress(operation: Operation) -> Progress:
    return compute_each_progress([operation])[operation]


def compute_each_progress(operations: Sequence[Operation]) -> dict[Operation, Progress]:
    """Return the progress of each operation: units in one query, stages in a few for each."""
    batches = Batch.objects.filter(operation__in=operations).order_by().values("operation")
    begun = Min("started_at", filter=Q(units__gt=0))
    spent = ExpressionWrapper(Now() - begun, output_field=DurationField())  # by one clock
    counted = batches.annotate(done=Sum("done_units", default=0), spent=spent)
    counts = {key: counts for key, *counts in counted.values_list("operation", "done", "spent")}
    return {operation: _build_progress(operation, *counts.get(operation.pk, (0, None))) for operation in operations}


def _build_progress(operation: Operation, done_units: int, spent: timedelta | None) -> Progress:
    total, handler = operation.total_units, find_handler(operation)
    stage = handler.find_stage(operation)
    if not operation.is_active:
        return Progress(done_units, total, 0.0, handler.units, stage)
    seconds = None if spent is None else spent.total_seconds()
    left = estimate_left(done_units, total, seconds, planned=operation.planned_seconds)
    more_units = handler.describe_units(operation) if operation.status == Status.RUNNING else ""
    return Progress(done_units, total, left, handler.units, stage, more_units)


def snapshot(operation: Operation) -> dict[str, object]:
    """Return the operation with its progress, as in its events; `event` is their type.

    Finished parts are not included: each has its own event.
    """
    kind, progress = find_handler(operation).build_event(operation)
    subject = operation.subject
    return {
        "operation_id": str(operation.pk),
        "kind": operation.kind,
        "subject_id": str(operation.subject_id),
        "owner_id": subject.owner_id if subject else None,
        "started_by": operation.started_by.username if operation.started_by else None,
        "queue": operation.queue,
        "priority": operation.priority,
        "status": operation.status,
        "error": operation.error or None,
        "created_at": timestamp(operation.created_at),
        "started_at": timestamp(operation.started_at) if operation.started_at else None,
        "finished_at": timestamp(operation.finished_at) if operation.finished_at else None,
        "event": kind,
        "progress": progress,
    }


def build_common_fields(operation: Operation) -> dict[str, Any]:
    """Return the fields common to all events of an operation."""
    return {
        "operation_id": str(operation.pk),
        "status": operation.status,
        "error": operation.error or None,
        "queue_position": queueing.count_ahead(operation),
        "waiting_for": describe_wait(operation),
    }
