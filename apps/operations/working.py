"""Work on batches: the entry point of RQ, and waiting for an operation in commands."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection
from django.db.models import F
from django.db.models.functions import Now
from redis.exceptions import RedisError

from apps.operations import events, queueing
from apps.operations.ending import conclude, end_operation, fit_workers, settle
from apps.operations.handlers import Faults, find_handler
from apps.operations.leasing import Lease, Stopped, claim, filter_claimable, get_this_worker, make_owner, name_process
from apps.operations.metrics import count_batch
from apps.operations.models import Batch, Operation, Status
from apps.operations.waiting import hold_host
from apps.operations.workers import watchdog
from apps.operations.workers.limits import HeldError, limited_transaction, name_session
from apps.operations.workers.stragglers import claim_backup
from apps.operations.workers.turns import take_turn
from apps.operations.workers.watchdog import Note
from benchbench.busy import clean_line
from benchbench.database.failures import DeadlockError, find_failure, was_ended
from benchbench.database.tables import closing_cursors
from benchbench.errors import BenchbenchError, UnfitWorkerError, error_text
from benchbench.logs import at_work
from benchbench.models import add_key

log = logging.getLogger(__name__)
POLL_SECONDS = 0.25
PASS_ON_SECONDS = 1.0  # lets another worker take the passed-on batch before this one finds it again
SUCCEEDED, FAILED, STOPPED, GIVEN_BACK = "done", "failed", "stopped", "given back"


class OperationFailedError(BenchbenchError):
    """The awaited operation failed or was cancelled."""

    code = "operation_failed"


def work_batch(batch_id: int) -> None:
    """Do the batch whose turn it is. Pass a batch that this worker may not claim on to the others."""
    close_old_connections()  # the database may have restarted since the last batch, and RQ does not check
    try:
        batch_id = take_turn(batch_id, get_this_worker())
        if not perform_batch(batch_id, owner=get_this_worker()) and pass_on_released(batch_id, owner=get_this_worker()):
            time.sleep(PASS_ON_SECONDS)
    finally:
        close_old_connections()


def _span(name: str, facts: dict[str, Any]) -> AbstractContextManager[object]:
    """Return a span if OpenTelemetry is installed (without effect until its SDK is set up), else a null context."""
    try:
        from opentelemetry import trace
    except ImportError:
        return nullcontext()
    attributes = {f"benchbench.{key}": value for key, value in facts.items()}
    return trace.get_tracer("benchbench").start_as_current_span(name, attributes=attributes)


def perform_batch(batch_id: int, *, owner: str, on_tick: Callable[[], None] | None = None) -> bool:
    """Claim a batch, or a straggler as its backup, do it, and conclude its operation if it was the last.

    Returns whether the batch was claimed.

    An exception costs the batch one attempt; after the last, the batch and its operation fail. A BenchbenchError would
    recur, so the batch fails at once. UnfitWorkerError releases the batch to other workers: `owner` takes no batch of
    this operation again. HeldError, for a lock that was not released in time, and a deadlock release it to all workers.
    """
    batch = claim(batch_id, owner) or claim_backup(batch_id, owner)
    if batch is None:
        return False
    began, claimed_at, kind, outcome = time.monotonic(), batch.started_at, batch.operation.kind, FAILED
    facts = {"operation": str(batch.operation_id), "batch": batch.ordinal, "worker": batch.lease_owner}
    try:
        with at_work(**facts), _span(f"batch {kind}", facts):  # names the batch in every log line
            left = _perform(batch, on_tick)
            if left == SUCCEEDED:
                conclude(batch.operation)
        outcome = left
    finally:
        waited = batch.started_at - claimed_at if batch.started_at and claimed_at else timedelta()
        count_batch(kind, outcome, max(0.0, time.monotonic() - began - waited.total_seconds()))
    return True


def _perform(batch: Batch, on_tick: Callable[[], None] | None) -> str:
    """Do a claimed batch and return its outcome."""
    try:
        with Lease(batch, on_tick=on_tick) as lease, name_session(batch.pk, batch.attempts), _limit():
            with hold_host(batch, lease), closing_cursors():
                find_handler(batch.operation).perform(batch, lease)
            if not lease.committed:
                raise RuntimeError(f"The handler of {batch.operation} ended without committing {batch}.")
    except Stopped:
        log.info("%s stopped: cancelled, or taken over by another worker.", batch)
        return STOPPED
    except SystemExit:  # a second signal, which RQ would log as a failed job
        _release_batch(batch, lease, "The worker was stopped during this batch.")
        return GIVEN_BACK
    except UnfitWorkerError as error:
        _release_batch(batch, lease, error, unfit_workers=add_key("unfit_workers", batch.lease_owner, str(error)))
        return GIVEN_BACK
    except HeldError as error:
        _release_batch(batch, lease, error)
        return GIVEN_BACK
    except Exception as error:
        if isinstance(find_failure(error), DeadlockError):  # nothing was stored, and it will hardly recur
            _release_batch(batch, lease, error)
            return GIVEN_BACK
        is_expected = isinstance(error, BenchbenchError)
        faults = Faults()
        faults.add(error_text(error), error)
        if not _end_attempt(batch, error_text(error), final=is_expected, result=faults.as_result()):
            log.info(
                "%s stopped, cancelled or taken over by another worker: %s", batch, error_text(error), exc_info=error
            )
            return STOPPED
        log.error(
            "%s, attempt %d: %s", batch, batch.attempts, error_text(error), exc_info=None if is_expected else error
        )
        return FAILED
    return SUCCEEDED


def _limit() -> AbstractContextManager[None]:
    """Return the time limit of a batch. RQ raises JobTimeoutException earlier, unless native code hangs."""
    seconds = settings.BENCHBENCH_BATCH_TIMEOUT_SECONDS
    sentence = f"The batch took longer than BENCHBENCH_BATCH_TIMEOUT_SECONDS ({seconds:,} s) and was interrupted."
    return watchdog.limit(seconds + watchdog.GRACE_SECONDS, sentence)


def release(pid: int, note: Note, sentence: str) -> None:
    """Release the batch of a worker of this host whose process ended, using its last note.

    A batch that hung in a stage's queries loses no attempt. The next attempt skips the query (`Batch.hung`) or, if
    several hung together, does them one by one.
    """
    batches = Batch.objects.filter(state=Batch.State.RUNNING, lease_owner__startswith=name_process(pid))
    for batch in batches.select_related("operation"):
        if "stage" not in note:
            _end_attempt(batch, sentence)
            continue
        hung = batch.hung.get(note["stage"], {})
        (query_id, *other_ids) = note["queries"]
        batch.hung = {**batch.hung, note["stage"]: {**hung, "" if other_ids else str(query_id): sentence}}
        Lease(batch).find_row().update(hung=batch.hung)
        _release_batch(batch, Lease(batch), sentence)


def _release_batch(batch: Batch, lease: Lease, error: Exception | str, **operation_fields: object) -> None:
    """Release a batch for another attempt without counting this one. Store `operation_fields` in its operation."""
    log.warning("%s given back by %s: %s", batch, batch.lease_owner, error)
    with limited_transaction():  # lock the operation's row first, as commits do
        if operation_fields:
            Operation.objects.filter(pk=batch.operation_id).update(**operation_fields)
        released_count = lease.find_row().update(
            state=Batch.State.PENDING, attempts=F("attempts") - 1, lease_until=None, finished_at=Now()
        )
        if released_count:
            batch.attempts -= 1
            queueing.pass_on(batch.operation.queue, batch)
    events.publish(batch.operation_id)


def pass_on_released(batch_id: int, *, owner: str) -> bool:
    """Enqueue a batch again if `owner` may not claim it, having released its operation. Return whether that is so."""
    waiting = filter_claimable(Batch.objects.filter(pk=batch_id, operation__unfit_workers__has_key=owner))
    batch = waiting.select_related("operation").first()
    if batch is None:
        return False
    queueing.pass_on(batch.operation.queue, batch)
    return True


def _end_attempt(
    batch: Batch, message: str, *, final: bool = False, result: Mapping[str, object] | None = None
) -> bool:
    """End an attempt with an error. The last attempt, or a `final` error, fails the batch.

    Return whether the attempt was ended: not if it lost the lease or the operation was cancelled.
    """
    final = final or batch.attempts >= settings.BENCHBENCH_MAX_ATTEMPTS
    state = Batch.State.FAILED if final else Batch.State.PENDING
    with limited_transaction():
        if final:  # lock the operation's row first, as commits do: the batch's backup may be committing
            list(Operation.objects.select_for_update().filter(pk=batch.operation_id).values_list("pk"))
        fields = {"state": state, "error": message, "result": result or {}, "lease_until": None}
        rows = Lease(batch).find_row().exclude(operation__status=Status.CANCELLED)
        if not rows.update(**fields, finished_at=Now()):
            return False
        if final:
            end_operation(batch.operation, Status.FAILED, error=message)
        else:
            queueing.enqueue(batch.operation.queue, [batch])
    return True


def _work_without_workers(operation: Operation, owner: str, tick: Callable[[], None]) -> bool:
    """Do a batch of an operation that no worker serves, or settle the operation. Return whether anything was done."""
    if fit_workers(operation):
        return False
    todo = filter_claimable(Batch.objects.filter(operation=operation), owner).order_by("ordinal").values("pk").first()
    if todo is None:
        return settle(operation, patient=False)
    return perform_batch(todo["pk"], owner=owner, on_tick=tick)


def wait(operation: Operation, *, on_progress: Callable[[Mapping[str, object]], None] | None = None) -> Operation:
    """Wait until an operation has ended and return it. While no worker serves its queue, do its batches here.

    Waits for Redis and PostgreSQL if they are unreachable, but raises the error of PostgreSQL inside a transaction.
    `on_progress` gets the data of its events several times a second. Raises OperationFailedError with the stored error.
    """
    owner = make_owner()

    def tick() -> None:
        if on_progress:
            operation.refresh_from_db()
            on_progress(find_handler(operation).build_event(operation)[1])

    while True:
        did_work = False
        try:
            tick()
            operation.refresh_from_db()
            if not operation.is_active:
                break
            did_work = _work_without_workers(operation, owner, tick)
        except RedisError as error:  # unknown whether a worker serves the queue
            log.warning("Redis does not answer: %s Waiting for it.", error)
        except Exception as error:
            if connection.in_atomic_block or not was_ended(error):
                raise
            log.warning("PostgreSQL does not answer: %s. Waiting for it.", clean_line(str(error)).rstrip("."))
            connection.close()
        if not did_work:
            time.sleep(POLL_SECONDS)
    if operation.status != Status.COMPLETED:
        raise OperationFailedError(operation.error or f"The {operation} was {operation.status}.")
    return operation
