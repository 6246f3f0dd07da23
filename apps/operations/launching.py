"""Launching and cancelling an operation; quotas: how much work of one user may be active."""

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from apps.operations import events
from apps.operations.ending import conclude, end_operation
from apps.operations.leasing import add_batches
from apps.operations.models import Operation, Status
from apps.operations.workers.limits import HeldError, pressing
from benchbench.database.failures import read_again, refresh
from benchbench.errors import ConflictError

# What is counted of each kind, and the setting that says how many of it one user may have started.
QUOTAS = {
    Operation.Kind.BENCHMARK: ("benchmarks running", "BENCHMARK_MAX_RUNNING_PER_USER"),
    Operation.Kind.INDEX: ("indexes being built", "BENCHMARK_MAX_INDEXING_PER_USER"),
    Operation.Kind.RESOLVE: ("mappings being resolved", "BENCHMARK_MAX_RESOLVING_PER_USER"),
    Operation.Kind.LLM_JUDGING: ("rounds being judged by a model", "BENCHMARK_MAX_LLM_JUDGING_PER_USER"),
    Operation.Kind.MEASURE: ("benchmarks being measured again", "BENCHMARK_MAX_MEASURING_PER_USER"),
}


class QuotaError(ConflictError):
    """The user has as much under way as one user may."""

    code = "quota"


def require_room(user: User | None, kind: Operation.Kind) -> None:
    """Raise QuotaError where `user` started as many operations of the kind, still active, as one may.

    A command without an owner has no limit, nor has a kind without a quota. Call it in the transaction that starts
    another: the lock on the user makes two starts at once count each other.
    """
    if user is None or kind not in QUOTAS:
        return
    what, setting = QUOTAS[kind]
    read_again(User.objects.select_for_update(no_key=True), user.pk)
    most = getattr(settings, setting)
    active = Operation.objects.filter(started_by=user, kind=kind, status__in=Status.active()).count()
    if active >= most:
        raise QuotaError(
            f"{user.get_username()} has {active} {what}, and {most} is the most for one user ({setting}): wait for one "
            "to end, or cancel one."
        )


class OperationActiveError(ConflictError):
    """The same work on the same thing is already under way."""

    code = "operation_active"


def start_operation(
    kind: Operation.Kind,
    *,
    subject_id: uuid.UUID,
    batches: Iterable[tuple[dict[str, Any], int]],
    by: User | None = None,
    queue: str = "default",
    parameters: dict[str, Any] | None = None,
) -> Operation:
    """Create an operation with its first batches (payload, units of work) and put them on `queue` after commit.

    Whoever sees the subject watches it. `by` is who starts it, and needs room in their quota for another of the kind.
    Raises OperationActiveError while another operation of the kind works on the subject, QuotaError.
    """
    try:
        with transaction.atomic():
            require_room(by, kind)
            operation = Operation.objects.create(
                kind=kind, subject_id=subject_id, started_by=by, queue=queue, parameters=parameters or {}
            )
            add_batches(operation, batches)
    except IntegrityError as error:
        if "operation_one_active_per_subject" not in str(error):
            raise
        raise OperationActiveError(
            f"Another {kind} operation is already at work on this. Wait for it, or cancel it first."
        ) from error
    refresh(operation)
    transaction.on_commit(lambda: events.publish(operation.pk, always=True))
    transaction.on_commit(lambda: conclude(operation))  # at once, where there is nothing to do
    return operation


def cancel_operation(operation: Operation) -> None:
    """End an active operation as cancelled. Workers notice between parts; what is committed stays.

    Raises ConflictError when it has ended already, or somebody else keeps changing it.
    """
    try:
        with pressing():  # a worker that stands still in the midst of a commit holds the row
            ended = end_operation(operation, Status.CANCELLED, error="")
    except HeldError as error:
        raise ConflictError(f"Somebody else is changing the {operation} at this moment. Try again.") from error
    if not ended:
        raise ConflictError(f"The {operation} has already ended ({operation.status}); there is nothing to cancel.")
