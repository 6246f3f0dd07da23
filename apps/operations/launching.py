"""Launching and cancelling operations, and quotas on the active operations of a user."""

import uuid
from collections.abc import Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.operations import events
from apps.operations.ending import conclude, end_operation
from apps.operations.handlers import HANDLERS
from apps.operations.leasing import add_batches
from apps.operations.models import PLANNED, BatchSpec, Operation, Priority, Status
from apps.operations.workers.limits import HeldError, end_blockers
from benchbench.database.failures import read_again, refresh
from benchbench.errors import BenchbenchError, ConflictError


class QuotaError(ConflictError):
    """The user has reached the limit of active operations of a kind."""

    code = "quota"


def require_room(user: User | None, kind: Operation.Kind) -> None:
    """Check that `user` may start another operation of the kind. Raises QuotaError.

    Commands without an owner have no limit. Call it in the transaction that starts the
    operation: the lock on the user makes simultaneous starts count each other.
    """
    if user is None:
        return
    handler = HANDLERS[kind]
    read_again(User.objects.select_for_update(no_key=True), user.pk)
    limit = getattr(settings, handler.limit)
    count = Operation.objects.filter(started_by=user, kind=kind, status__in=Status.active()).count()
    if count >= limit:
        raise QuotaError(
            f"{user.get_username()} has {count} {handler.busy}; a user may have at most {limit} ({handler.limit}). "
            "Wait until one ends, or cancel one."
        )


class OperationActiveError(ConflictError):
    """An operation of this kind is already active on the subject."""

    code = "operation_active"


class PriorityError(BenchbenchError):
    """The user may not start work of this priority."""

    code = "permission_denied"
    status = 403


def start_operation(
    kind: Operation.Kind,
    *,
    subject_id: uuid.UUID,
    batches: Iterable[BatchSpec],
    by: User | None = None,
    queue: str = "default",
    parameters: dict[str, object] | None = None,
    planned_seconds: float | None = None,
    priority: str = Priority.NORMAL,
) -> Operation:
    """Create an operation with its first batches (payload, units of work) and put them on `queue` after commit.

    `planned_seconds` is what the work takes on one worker by its plan, if there is one.

    All users who see the subject can watch it. The user `by` starts it, and it counts against their quota. Raises
    OperationActiveError if another operation of the kind is active on the subject, QuotaError above the quota, and
    PriorityError for a high priority unless `by` is a superuser.
    """
    if priority == Priority.HIGH and by is not None and not by.is_superuser:
        raise PriorityError("Only superusers may start work of high priority: choose normal or low.", field="priority")
    try:
        with transaction.atomic():
            require_room(by, kind)
            operation = Operation.objects.create(
                kind=kind,
                subject_id=subject_id,
                started_by=by,
                queue=queue,
                parameters=(parameters or {}) | ({} if planned_seconds is None else {PLANNED: planned_seconds}),
                priority=priority,
            )
            add_batches(operation, batches)
    except IntegrityError as error:
        if "operation_one_active_per_subject" not in str(error):
            raise
        raise OperationActiveError(
            f"Another {kind} operation is already running here. Wait until it ends, or cancel it first."
        ) from error
    refresh(operation)
    transaction.on_commit(lambda: events.publish(operation.pk, always=True))
    transaction.on_commit(lambda: conclude(operation))  # at once if it has no batches
    return operation


def cancel_operation(operation: Operation) -> None:
    """Cancel an active operation. Workers notice between parts; committed results stay.

    Raises ConflictError if it has already ended or stays locked by another transaction.
    """
    try:
        with end_blockers():  # a worker frozen during a commit holds the row
            ended = end_operation(operation, Status.CANCELLED, error="")
    except HeldError as error:
        raise ConflictError("Another process is changing this operation. Try again.") from error
    if not ended:
        raise ConflictError(f"This operation has already ended ({operation.status}), so it cannot be cancelled.")
