"""Limits on the locks of frozen processes in PostgreSQL, and ways to break them.

A worker frozen in a transaction (SIGSTOP, a paused container, a swapping host) keeps its locks, since its connection
stays open. So claims do not wait for locks, and a cancel ends the transactions that block it. The sweep ends those of
attempts whose lease has expired. A frozen worker that resumes finds its connection closed.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from django.conf import settings
from django.db import Error, OperationalError, connection, connections, transaction

log = logging.getLogger(__name__)
PRESSING_SECONDS = 2.0  # a cancel waits this long for blocking transactions to end
WORKER = "benchbench worker"  # the name of a worker's session in PostgreSQL
AT_WORK = f"{WORKER} "  # followed by the batch's key, a dot, the attempt
SET_LIMITS = """
    SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
           set_config('statement_timeout', %s, true)
"""
# Two seconds of grace: after its commit a worker has no lease.
BREAK_OFF_LOST = """
    SELECT count(pg_terminate_backend(session.pid)) FROM pg_stat_activity session
    WHERE session.datname = current_database() AND session.usename = current_user
      AND starts_with(session.application_name, %s) AND session.xact_start < now() - interval '2 s'
      AND NOT EXISTS (
        SELECT FROM operations_batch batch
        WHERE session.application_name = %s || batch.id || '.' || batch.attempts
          AND batch.state = 'running' AND batch.lease_until > now()
      )
"""
# Only sessions that block others and are not blocked themselves: a second cancel waits in the same queue. Find all
# before ending the first, or sessions waiting for that one would look unblocked.
BREAK_OFF_HOLDERS = """
    WITH RECURSIVE blocker (pid) AS (
        SELECT unnest(pg_blocking_pids(%s)) UNION SELECT unnest(pg_blocking_pids(pid)) FROM blocker
    )
    SELECT count(pg_terminate_backend(found)) FROM unnest(ARRAY(
        SELECT pid FROM blocker JOIN pg_stat_activity session USING (pid)
        WHERE session.usename = current_user AND pg_blocking_pids(pid) = '{}' AND (
            starts_with(session.application_name, %s)
            OR session.state LIKE 'idle in transaction%%' AND session.state_change < now() - %s * interval '1 s'
        )
    )) AS found
"""


class HeldError(Exception):
    """A row stayed locked by another transaction longer than this one may wait."""


@contextmanager
def limited_transaction(*, lock_seconds: float | None = None) -> Iterator[None]:
    """Open a transaction that PostgreSQL ends if its process freezes or a lock or statement takes too long.

    Raises HeldError after waiting BENCHBENCH_LOCK_SECONDS, or `lock_seconds`, for a lock.
    """
    wait = settings.BENCHBENCH_LOCK_SECONDS if lock_seconds is None else lock_seconds
    limits = (wait, settings.BENCHBENCH_IDLE_TRANSACTION_SECONDS, settings.BENCHBENCH_BATCH_TIMEOUT_SECONDS)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(SET_LIMITS, [f"{1000 * seconds:.0f}" for seconds in limits])
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
            raise HeldError(str(error)) from error
        raise


def call_sessions(name: str) -> None:
    """Set the application name of this process's future sessions in PostgreSQL."""
    connections.settings["default"]["OPTIONS"]["application_name"] = name
    connection.close()


@contextmanager
def name_session(batch_id: int, attempt: int) -> Iterator[None]:
    """Name the session after an attempt at a batch, so that it can be ended once the lease is lost."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", [f"{AT_WORK}{batch_id}.{attempt}"])
    try:
        yield
    finally:
        with suppress(Error), connection.cursor() as cursor:  # a closed connection needs no reset
            cursor.execute("RESET application_name")


def end_lost_sessions() -> int:
    """End the transactions of attempts that lost their lease. Return their number.

    This frees their locks. They could not have been committed.
    """
    with connection.cursor() as cursor:
        cursor.execute(BREAK_OFF_LOST, [AT_WORK, AT_WORK])
        (count,) = cursor.fetchone()
    if count:
        log.warning("%d transactions of workers that lost their leases were ended.", count)
    return int(count)


@contextmanager
def end_blockers() -> Iterator[None]:
    """End transactions that block this connection in the block for longer than PRESSING_SECONDS.

    This applies to workers and to sessions idle in a transaction. Other running sessions, such as a colleague's
    request, are waited for.
    """
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with meanwhile(lambda: _end_blockers(pid), every=PRESSING_SECONDS, name="pressing"):
        yield


def _end_blockers(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BREAK_OFF_HOLDERS, [pid, WORKER, PRESSING_SECONDS])
        (count,) = cursor.fetchone()
    if count:
        log.warning("%d transactions that blocked a cancellation were ended.", count)


@contextmanager
def meanwhile(act: Callable[[], object], *, every: float, name: str) -> Iterator[None]:
    """Call `act` repeatedly in a thread while the block runs; see `repeat`."""
    ended = threading.Event()
    thread = repeat(act, ended, every=every, name=name)
    try:
        yield
    finally:
        ended.set()
        thread.join()  # or it might interrupt the code after the block


def repeat(
    act: Callable[[], object], ended: threading.Event, *, every: float, name: str, at_once: bool = False
) -> threading.Thread:
    """Call `act` in a thread every `every` seconds until `ended` is set or it returns true. Errors are logged."""

    def work(wait: float) -> None:
        while not ended.wait(wait):
            wait = every
            try:
                if act():
                    return
            except Exception:
                log.exception("The thread %s failed and tries again.", name)
            finally:
                connection.close()

    thread = threading.Thread(target=work, args=(0 if at_once else every,), name=name, daemon=True)
    thread.start()
    return thread
