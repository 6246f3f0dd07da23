"""The end of an operation: completed after its last batch, failed with an error, or cancelled. It happens once.

The sweep repairs what a killed worker or a restarted Redis left behind.
"""

import logging
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db import Error, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from apps.operations import events, queueing, timing
from apps.operations.handlers import HANDLERS, find_handler
from apps.operations.leasing import ACTIVE, add_batches, filter_claimable
from apps.operations.models import ALONE, Batch, Operation, Status
from apps.operations.workers.limits import HeldError, end_lost_sessions, limited_transaction
from apps.operations.workers.stragglers import filter_stragglers
from benchbench.database.failures import DeadlockError, find_failure, was_ended
from benchbench.database.tables import renew_statistics
from benchbench.decimals import counted
from benchbench.errors import error_text

log = logging.getLogger(__name__)
completed = Signal()  # of an `operation`, in the transaction that completes it
UNFIT_SECONDS = 60  # grace period for a restarting worker
LOST = (
    "The worker stopped without a message on every attempt at this batch; it may have run out of memory. Check the "
    "worker's log, then retry."
)


def end_operation(operation: Operation, status: Status, *, error: str) -> bool:
    """Fail or cancel an active operation, once. Return whether this call ended it. Raises HeldError."""
    with limited_transaction():
        changed = Operation.objects.filter(pk=operation.pk, status__in=ACTIVE).update(
            status=status, error=error, finished_at=Now()
        )
        operation.refresh_from_db()
        if changed:
            find_handler(operation).stop(operation)
    if changed:
        transaction.on_commit(lambda: events.publish(operation.pk, always=True))
    return bool(changed)


def conclude(operation: Operation) -> bool:
    """Complete the operation, once, if every batch is done and its handler adds no last ones. Return whether it ended.

    Two workers that end the last two batches both call this after their commits, so at least one sees both done. If
    finalising raises an error, the operation fails. If the row is locked or the connection breaks, nothing changes and
    the sweep tries again.
    """
    undone = Batch.objects.filter(operation=operation).exclude(state=Batch.State.DONE).order_by("ordinal").values("pk")
    if undone.first():  # by the index in this order: EXISTS may read all batches
        return False
    try:
        with limited_transaction():
            if not _lock_operation(operation) or undone.first():  # another worker added the last ones
                return False
            if last := list(find_handler(operation).list_last_batches(operation)):
                add_batches(operation, last)
                return False
            changed = Operation.objects.filter(pk=operation.pk, status__in=ACTIVE).update(
                status=Status.COMPLETED, finished_at=Now()
            )
            if not changed:
                return False
            operation.refresh_from_db()
            find_handler(operation).finalise(operation)
            completed.send(Operation, operation=operation)
    except HeldError:
        operation.refresh_from_db()
        return False
    except Exception as error:
        if was_ended(error) or isinstance(find_failure(error), DeadlockError):
            log.warning("%s could not be ended; the next sweep tries again: %s", operation, error)
            return False
        log.exception("Could not finalise %s.", operation)
        return _fail_unless_locked(operation, error_text(error))
    events.publish(operation.pk, always=True)
    timed = Batch.objects.filter(state=Batch.State.RUNNING, payload__contains={ALONE: True})  # others disturb its times
    with suppress(Error):  # autovacuum does it later
        if not timed.exists():
            renew_statistics()
    return True


def settle(operation: Operation, *, patient: bool = True) -> bool:
    """End an operation whose worker died: fail it if a batch has no attempts left, otherwise conclude it.

    It also fails if all workers have released it and no other came within UNFIT_SECONDS (at once unless `patient`).
    Does not wait for locks: a locked operation stays as it is. Return whether this call ended it.
    """
    expired = operation.batches.filter(
        state=Batch.State.RUNNING, lease_until__lt=Now(), attempts__gte=settings.BENCHBENCH_MAX_ATTEMPTS
    )
    if (expired | operation.batches.filter(state=Batch.State.FAILED)).exists():
        with limited_transaction():
            if not _lock_operation(operation):
                return False
            lost_ids = list(expired.select_for_update(skip_locked=True).order_by().values_list("pk", flat=True))
            Batch.objects.filter(pk__in=lost_ids).update(
                state=Batch.State.FAILED, error=LOST, lease_until=None, finished_at=Now()
            )
        failed = operation.batches.filter(state=Batch.State.FAILED).first()
        if failed is not None:
            return _fail_unless_locked(operation, failed.error)
    if operation.unfit_workers and not _can_continue(operation, patient=patient):
        return _fail_unless_locked(
            operation, f"No worker can run this operation. {[*operation.unfit_workers.values()][-1]}"
        )
    return conclude(operation)


def _fail_unless_locked(operation: Operation, error: str) -> bool:
    """Fail an operation unless it or its rows are locked. Return whether this call ended it."""
    try:
        with limited_transaction():
            if _lock_operation(operation):
                return end_operation(operation, Status.FAILED, error=error)
    except HeldError as lock_error:
        log.warning("%s could not be failed; the next sweep tries again: %s", operation, lock_error)
    operation.refresh_from_db()  # may hold values of a transaction that was rolled back
    return False


def _lock_operation(operation: Operation) -> bool:
    """Lock an active operation for this transaction without waiting. Return whether that succeeded."""
    rows = Operation.objects.filter(pk=operation.pk, status__in=ACTIVE).select_for_update(skip_locked=True)
    return bool(rows.order_by().values_list("pk"))


def fit_workers(operation: Operation) -> set[str]:
    """Return the workers that serve the operation's queue and have not released it."""
    return queueing.find_workers(operation.queue) - operation.unfit_workers.keys()


def _can_continue(operation: Operation, *, patient: bool) -> bool:
    """Return whether the released operation is running, can still be claimed, or has no pending batch."""
    waiting = operation.batches.filter(state=Batch.State.PENDING)
    at_work = Q(state=Batch.State.RUNNING, lease_until__gt=Now())
    if patient:
        at_work |= Q(finished_at__gt=Now() - timedelta(seconds=UNFIT_SECONDS))
    return not waiting.exists() or operation.batches.filter(at_work).exists() or bool(fit_workers(operation))


def sweep() -> int:
    """Repair operations after failures. Return the number of batches enqueued.

    End the transactions of attempts that lost their leases. Fail batches whose last attempt expired. Conclude
    operations whose worker died after the last batch. Enqueue claimable batches without a job, and stragglers once
    nothing else is left of their operation. Call `tidy` of all handlers. Schedule timed jobs. Any process may call it
    at any time: each step is conditional or idempotent, and does not wait for locks.
    """
    end_lost_sessions()
    waiting: dict[str, list[Batch]] = {}
    for operation in Operation.objects.filter(status__in=ACTIVE):
        try:
            if not settle(operation):
                rows = operation.batches.all()
                waiting.setdefault(operation.queue, []).extend(filter_claimable(rows) or filter_stragglers(rows))
        except Exception as error:
            if was_ended(error):
                raise
            log.exception("Could not check %s; the next sweep tries again.", operation)
    enqueued = 0
    for queue, batches in waiting.items():
        present = queueing.list_job_ids(queue) if batches else set()
        if missing := [batch for batch in batches if queueing.name_job(batch) not in present]:
            log.warning("Enqueued %s on %s, which had no job or took long.", counted(len(missing), "batch"), queue)
            queueing.pass_on(queue, *missing)  # under new names: a worker may still run a job believed lost
            enqueued += len(missing)
    for handler in HANDLERS.values():
        handler.tidy()
    timing.schedule(timing.list_timed_jobs())
    return enqueued
