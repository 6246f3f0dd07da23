"""Snapshots: the whole of an operation at one moment, for a watcher that has just connected."""

from typing import Any

from apps.operations import queueing
from apps.operations.handlers import handler_for
from apps.operations.models import Operation
from apps.operations.subjects import owner_id_of
from apps.operations.waiting import waiting_for
from benchbench.timestamps import timestamp


def snapshot(operation: Operation) -> dict[str, Any]:
    """Return the operation with its progress: the data of its own events, whose type is `event`.

    Parts that have finished are not told here, but each in an event of its own.
    """
    kind, progress = handler_for(operation).event(operation)
    return {
        "operation_id": str(operation.pk),
        "kind": operation.kind,
        "subject_id": str(operation.subject_id),
        "owner_id": owner_id_of(operation),
        "started_by": operation.started_by.username if operation.started_by else None,
        "queue": operation.queue,
        "status": operation.status,
        "error": operation.error or None,
        "created_at": timestamp(operation.created_at),
        "started_at": timestamp(operation.started_at) if operation.started_at else None,
        "finished_at": timestamp(operation.finished_at) if operation.finished_at else None,
        "event": kind,
        "progress": progress,
    }


def common_fields(operation: Operation) -> dict[str, Any]:
    """Return what every event tells of its operation."""
    return {
        "operation_id": str(operation.pk),
        "status": operation.status,
        "error": operation.error or None,
        "queue_position": queueing.position(operation),
        "waiting_for": waiting_for(operation),
    }
