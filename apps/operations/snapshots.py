"""The whole of an operation at one moment, as a watcher that just came gets it."""

from typing import Any

from apps.operations.handlers import handler_for
from apps.operations.models import Operation
from apps.operations.subjects import owner_id_of
from benchbench.timestamps import timestamp


def snapshot(operation: Operation) -> tuple[dict[str, Any], int]:
    """Return the operation with its progress, and the ordinal of the last finished part that this already tells of.

    `progress` is the data of the operation's own events (their type is `event`), with the last of the parts that have
    finished: who comes late has missed their announcements.
    """
    handler = handler_for(operation)
    kind, progress = handler.event(operation)
    finished = handler.completions(operation, 0)
    last, told = finished[-1] if finished else (0, {})
    state = {
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
        "progress": {**progress, **told},
    }
    return state, last
