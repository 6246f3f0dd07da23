"""Waiting for a host, with the reason shown to watchers."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from django.utils import timezone
from redis.exceptions import RedisError

from apps.operations import events, queueing
from apps.operations.hosts import Holder, list_holders, lock_host, name_site, note_holder
from apps.operations.leasing import Lease, name_process
from apps.operations.models import Batch, Operation, Status
from benchbench.access import is_visible_to_viewers
from benchbench.timestamps import timestamp

NO_WORKER = "No worker serves the queue {}: start one with `benchbench worker`."
MAX_NAMED = 3  # holders of a host, in a message
log = logging.getLogger(__name__)
REPORT_SECONDS = 1.0  # consecutive batches wait less than this, which is not reported


@contextmanager
def hold_host(batch: Batch, lease: Lease) -> Iterator[None]:
    """Hold this host for a batch, `alone` if its payload says so. While waiting, store the reason in the batch.

    The wait is not part of its time: `started_at` moves to the end of the wait.
    """
    waited, begun, claimed_at = 0.0, time.monotonic(), batch.started_at

    def wait(seconds: float) -> None:
        nonlocal waited
        try:
            lease.wait(seconds)
        finally:
            batch.started_at = claimed_at and claimed_at + timedelta(seconds=time.monotonic() - begun)
        waited += seconds
        if waited >= REPORT_SECONDS:
            waited = 0.0
            _store_reason(batch, lease, _describe_batch(batch))

    alone, operation = batch.is_alone, batch.operation
    with lock_host(alone=alone, wait=wait):
        since = timestamp(timezone.now().replace(microsecond=0))
        with note_holder(Holder(name_site(), operation.kind, str(operation.pk), os.getpid(), since, alone)):
            _store_reason(batch, lease, "")
            yield


def describe_wait(operation: Operation) -> str | None:
    """Return the reason why the whole operation waits, or None if a batch is running or a worker can take one.

    While isolated work holds this host, its workers take no other: the reason names that work.
    """
    reasons = operation.batches.filter(state=Batch.State.RUNNING).values_list("waits_for", flat=True)
    if not reasons and operation.unfit_workers and operation.is_active:
        return f"Waits for another worker. {[*operation.unfit_workers.values()][-1]}"
    if reasons:
        return reasons[0] if all(reasons) and operation.is_active else None
    if operation.status != Status.PENDING:
        return None
    return describe_workers(operation.queue) or describe_isolated(operation)


def describe_workers(queue: str) -> str | None:
    """Return the reason why no worker serves a queue; None if one does, or if Redis is unreachable."""
    with suppress(RedisError):
        if queueing.find_workers(queue):
            return None
        reasons = queueing.find_waiting_workers(queue)
        return f"Waits for a worker. {next(iter(reasons.values()), NO_WORKER.format(queue))}"
    return None


def _store_reason(batch: Batch, lease: Lease, reason: str) -> None:
    if reason != batch.waits_for:
        batch.waits_for = reason
        if reason:
            log.info("%s: %s", batch, reason)
        moved = {} if reason else {"started_at": batch.started_at}
        lease.find_row().update(waits_for=reason, **moved)
        events.publish(batch.operation_id)


def describe_isolated(operation: Operation) -> str | None:
    """Return the reason why an operation waits for a worker of this host, if isolated work holds it."""
    host = name_process(os.getpid()).partition(":")[0]
    holders = (holder for holder in list_holders() if holder.alone and holder.operation != str(operation.pk))
    return next((_describe_alone(holder, operation, host) for holder in holders), None)


def _describe_alone(holder: Holder, operation: Operation, host: str) -> str:
    return f"Waits for the host {host}: {_describe(holder, operation)} has run alone on it since {holder.since}."


def _describe_batch(batch: Batch) -> str:
    """Return the reason why a batch waits, from the notes of the batches that hold the host."""
    host, operation = batch.lease_owner.partition(":")[0], batch.operation
    blockers = [holder for holder in list_holders() if holder.operation != str(batch.operation_id)]
    if blockers and blockers[0].alone:
        return _describe_alone(blockers[0], operation, host)
    at_work = "; ".join(f"{_describe(holder, operation)}, since {holder.since}" for holder in blockers[:MAX_NAMED])
    more = f"; and {len(blockers) - MAX_NAMED} more" if len(blockers) > MAX_NAMED else ""
    at_work = f" Running on it: {at_work}{more}." if blockers else ""
    if batch.is_alone:
        return f"Waits until the host {host} is free: times are measured without other work on it.{at_work}"
    if blockers:
        return f"Waits for the host {host}: an isolated benchmark will run alone on it next.{at_work}"
    return f"Waits for the host {host}: an isolated benchmark of another site runs alone on it."


def _describe(holder: Holder, waiting: Operation) -> str:
    """Describe the work that holds the host: that of another site by its operation and process.

    Isolated work of this site is named only if all users who see the waiting operation see it too.
    """
    if holder.site == name_site():
        operation = Operation.objects.filter(pk=holder.operation).first()
        if operation is not None and not holder.alone:
            return f"the {operation.kind} operation {operation.pk}"
        if operation is not None:
            subject = operation.subject
            is_seen = subject is not None and is_visible_to_viewers(subject, waiting.subject)
            name = f'the isolated {operation.kind} "{subject}"'
            return name if is_seen else "an isolated benchmark that you may not see"
    kind = holder.kind if holder.kind in Operation.Kind.values else "unknown"
    isolated = "isolated " if holder.alone else ""
    return f"the {isolated}{kind} operation {holder.operation} in the process {holder.process} of {holder.site}"
