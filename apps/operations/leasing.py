"""Leases: a worker claims an attempt at a batch, renews its lease while working, and commits only while it holds it."""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from apps.operations import events, queueing
from apps.operations.models import Batch, BatchSpec, Operation, Status
from apps.operations.workers.limits import limited_transaction, meanwhile, repeat
from apps.operations.workers.watchdog import Ending, is_overdue

log = logging.getLogger(__name__)
CHECK_SECONDS = 1.0
ACTIVE = [status.value for status in Status.active()]


class Stopped(Exception):
    """The worker must stop: the operation was cancelled, or another worker has the lease."""


def make_owner() -> str:
    """Return a name for a worker, unique among all processes and machines."""
    return f"{name_process(os.getpid())}{uuid.uuid4().hex[:8]}"


def name_process(pid: int) -> str:
    """Return the common prefix of the names of all workers of a process of this host."""
    return f"{socket.gethostname()[-40:]}:{pid}:"


@cache
def get_this_worker() -> str:
    """Return the worker name of this process, used in its leases and signs of life."""
    return make_owner()


def filter_claimable(batches: QuerySet[Batch], owner: str | None = None) -> QuerySet[Batch]:
    """Return the batches that can be claimed now: by any worker, or by `owner`, except of operations that it released.

    All conditions are on the row itself, so that PostgreSQL checks them again when two workers race.
    """
    free = Q(state=Batch.State.PENDING) | Q(state=Batch.State.RUNNING, lease_until__lt=Now())
    return batches.filter(free, attempts__lt=settings.BENCHBENCH_MAX_ATTEMPTS, operation_id__in=select_active(owner))


def select_active(owner: str | None) -> QuerySet[Operation, object]:
    """Return the ids of the active operations, without those that `owner` released."""
    active = Operation.objects.filter(status__in=ACTIVE)
    return (active if owner is None else active.exclude(unfit_workers__has_key=owner)).values("pk")


def claim(batch_id: int, owner: str) -> Batch | None:
    """Claim a batch. None if it is done, leased, locked, or its operation has ended. Does not wait for locks."""
    with limited_transaction():
        free = filter_claimable(Batch.objects.filter(pk=batch_id), owner).select_for_update(
            skip_locked=True, of=("self",)
        )
        claimed_count = Batch.objects.filter(pk__in=list(free.order_by().values_list("pk", flat=True))).update(
            state=Batch.State.RUNNING,
            attempts=F("attempts") + 1,
            lease_owner=owner,
            backup_owner="",
            lease_until=_lease_end(),
            started_at=Now(),
            done_units=0,
            result={},
        )
    if not claimed_count:
        return None
    batch = Batch.objects.select_related("operation").get(pk=batch_id)
    if _begin(batch.operation):
        batch.operation.refresh_from_db()
        events.publish(batch.operation_id, always=True)
    return batch


def _begin(operation: Operation) -> bool:
    """Mark a pending operation as running. Return whether this call did it.

    Skips a locked row: the next claim of a batch tries again.
    """
    if operation.status != Status.PENDING:
        return False
    with limited_transaction():
        pending = Operation.objects.filter(pk=operation.pk, status=Status.PENDING).select_for_update(skip_locked=True)
        free = list(pending.order_by().values_list("pk", flat=True))
        return bool(Operation.objects.filter(pk__in=free).update(status=Status.RUNNING, started_at=Now()))


def _lease_end() -> Any:
    return Now() + timedelta(seconds=settings.BENCHBENCH_LEASE_SECONDS)


class Lease:
    """A worker's lease of one attempt at a batch, or its backup. Use it as a context manager: a thread renews it."""

    def __init__(self, batch: Batch, *, on_tick: Callable[[], None] | None = None) -> None:
        self.batch = batch
        self.committed = False
        self._on_tick = on_tick
        self._checked_at = time.monotonic()
        self._reported_at = 0.0
        self._ended = threading.Event()
        self._ending = Ending()
        self._lost = threading.Event()

    def find_row(self) -> QuerySet[Batch]:
        """Return the batch's row as a query set, empty if this attempt has lost the lease, or for a backup."""
        return self.find_work().filter(lease_owner=self.batch.lease_owner)

    def find_work(self) -> QuerySet[Batch]:
        """Return the batch's row as a query set, empty once this attempt or backup may not commit it."""
        owner = self.batch.lease_owner
        return Batch.objects.filter(
            Q(lease_owner=owner) | Q(backup_owner=owner),
            pk=self.batch.pk,
            state=Batch.State.RUNNING,
            attempts=self.batch.attempts,
        )

    def check(self) -> None:
        """Check that the work is still needed. Raises `Stopped` if not. Costs at most one query a second."""
        if self._lost.is_set():
            raise Stopped
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = time.monotonic()
        if not self._is_needed():
            raise Stopped
        if self._on_tick:
            self._on_tick()

    def _is_needed(self) -> bool:
        return self.find_work().filter(operation__status__in=ACTIVE).exists()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Cancel the database statement running in this block once the work is not needed. Raises `Stopped` then.

        Use it for statements that take minutes, during which nothing calls `check`.
        """
        connection.ensure_connection()
        at_work, interrupted = connection.connection, threading.Event()

        def interrupt() -> None:
            if interrupted.is_set() or not self._is_needed():
                interrupted.set()
                at_work.cancel_safe()

        try:
            with meanwhile(interrupt, every=CHECK_SECONDS, name=f"interrupt-{self.batch.pk}"):
                yield
        except OperationalError:
            if interrupted.is_set():
                raise Stopped from None
            raise

    def wait(self, seconds: float) -> None:
        """Sleep, such as for a lock, then check that the work is still needed. Raises `Stopped` if not."""
        time.sleep(seconds)
        self.check()

    def report(self, done_units: int, result: Mapping[str, object] | None = None, *, always: bool = False) -> None:
        """Store the progress of the batch for watchers, at most twice a second unless `always`.

        Use `always` for a new stage, not for further parts of one.
        """
        if not always and time.monotonic() - self._reported_at < settings.BENCHBENCH_EVENT_INTERVAL_MS / 1000:
            return
        self._reported_at = time.monotonic()
        self.find_row().update(done_units=done_units, **({} if result is None else {"result": result}))
        events.publish(self.batch.operation_id, always=always)

    @contextmanager
    def lock_operation(self, *, alone: bool = False) -> Iterator[None]:
        """Open a transaction during which the operation cannot end, for rows stored before the batch ends.

        Raises `Stopped` if the operation has ended or the lease is lost. Raises HeldError if another transaction,
        such as one that is `alone`, locks the operation for too long.
        """
        with limited_transaction():
            _lock_active(self.batch.operation, alone=alone)
            if self.batch.may_run_twice:
                _lock_work(self.batch)
            if not self.find_work().exists():
                raise Stopped
            yield

    @contextmanager
    def commit(
        self,
        result: Mapping[str, object] | None = None,
        *,
        batches: Iterable[BatchSpec] = (),
        then: Callable[[], Iterable[BatchSpec]] | None = None,
    ) -> Iterator[None]:
        """Store the batch's outcome and end it, in one transaction. Raises `Stopped` if the lease is lost.

        `batches` are further parts (payload, units), added in the same transaction. `then` returns more of them; it is
        called at the end, while no other batch of the operation can end. Raises HeldError if another transaction locks
        the operation for too long.
        """
        batches = list(batches)
        with self.lock_operation(alone=bool(batches) or then is not None):
            yield
            # Lock the row only now, so that the lease can be renewed while much is stored. If two attempts store at
            # once, one finds here that it lost the lease, and rolls back.
            ended = self.find_work().update(
                state=Batch.State.DONE,
                lease_owner=self.batch.lease_owner,
                started_at=self.batch.started_at,
                done_units=F("units"),
                result=result or {},
                error="",
                lease_until=None,
                finished_at=Now(),
            )
            if not ended:
                raise Stopped
            add_batches(self.batch.operation, batches)
            if then:
                add_batches(self.batch.operation, then())
        self.committed = True
        events.publish(self.batch.operation_id)

    def __enter__(self) -> "Lease":
        repeat(self._renew, self._ended, every=settings.BENCHBENCH_LEASE_SECONDS / 3, name=f"lease-{self.batch.pk}")
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._ending.end()

    def _renew(self) -> bool:
        """Renew the lease, every third of its length. Return whether to stop renewing.

        A hanging process does not renew. If the lease is lost or the work not needed, the process must end soon.
        """
        if not is_overdue():
            self.find_row().update(lease_until=_lease_end())
            if self._is_needed():
                return False
        self._lost.set()
        self._ending.begin()
        if self._ended.is_set():  # the block ended meanwhile: do not end the next batch
            self._ending.end()
        return True


def _lock_active(operation: Operation, *, alone: bool) -> None:
    """Lock an operation so that it cannot end before this transaction. Raises `Stopped` if it has ended.

    Commits of several workers share the lock, unless one adds batches and must be `alone`. Commits lock it before any
    other row, as does the end of an operation, so that the two cannot deadlock.
    """
    strength = "UPDATE" if alone else "SHARE"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT 1 FROM operations_operation WHERE id = %s AND status = ANY(%s) FOR {strength}",  # nosec # a word of ours
            [operation.pk, ACTIVE],
        )
        if cursor.fetchone() is None:
            raise Stopped


def _lock_work(batch: Batch) -> None:
    """Let one of two workers store a batch at a time, so that the second finds it done and not its rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"batch {batch.pk}"])


def add_batches(operation: Operation, batches: Iterable[BatchSpec]) -> None:
    """Append batches to an operation and enqueue them after commit. The lock on its row serialises the ordinals."""
    specs = list(batches)
    if not specs:
        return
    Operation.objects.select_for_update().get(pk=operation.pk)
    last = operation.batches.aggregate(last=Coalesce(Max("ordinal"), -1))["last"]
    new_batches = Batch.objects.bulk_create(
        Batch(operation=operation, ordinal=last + 1 + n, payload=payload, units=units)
        for n, (payload, units) in enumerate(specs)
    )
    Operation.objects.filter(pk=operation.pk).update(total_units=F("total_units") + sum(units for _, units in specs))
    queueing.enqueue(operation.queue, new_batches)
