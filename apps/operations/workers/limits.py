"""Limits of what a process that stands still may hold in PostgreSQL, and how those who need it get it.

A worker that is frozen in a transaction (SIGSTOP, a paused container, a host that swaps) keeps its locks, for its
connection stays open. So whoever takes work over waits for no lock, whoever cancels breaks off who holds it up, and the
sweep ends the transactions of attempts whose lease has run out. The frozen one finds its connection closed.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from django.conf import settings
from django.db import Error, OperationalError, connection, connections, transaction

log = logging.getLogger(__name__)
PRESSING_SECONDS = 2.0  # for so long a cancel lets others end by themselves what holds it up
WORKER = "benchbench worker"  # how a worker's session is called in PostgreSQL
AT_WORK = f"{WORKER} "  # and the batch's key, a dot, the attempt
SET_LIMITS = """
    SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
           set_config('statement_timeout', %s, true)
"""
# A moment's grace: what a worker does after its commit has no lease.
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
# Only who holds up all the others, and waits for nobody: a second cancel waits in the same queue. All are found before
# the first is ended, or whoever waited for that one would be found to wait for nobody.
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
    """A row is locked by another transaction, and was for as long as this one may wait."""


@contextmanager
def limited(*, lock_seconds: float | None = None) -> Iterator[None]:
    """A transaction that PostgreSQL ends where its process stands still, or a lock or a statement takes too long.

    It waits for a lock BENCHBENCH_LOCK_SECONDS at most, or `lock_seconds`, and then raises HeldError.
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
    """Let PostgreSQL know the sessions of this process, which are begun from now on, by a name."""
    connections.settings["default"]["OPTIONS"]["application_name"] = name
    connection.close()


@contextmanager
def at_work_on(batch_id: int, attempt: int) -> Iterator[None]:
    """Name the session after an attempt at a batch, to break it off once that has lost its lease."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", [f"{AT_WORK}{batch_id}.{attempt}"])
    try:
        yield
    finally:
        with suppress(Error), connection.cursor() as cursor:  # a connection that is gone has no name either
            cursor.execute("RESET application_name")


def break_off_lost() -> int:
    """End the transactions of attempts that have no lease any more, and return of how many.

    What they hold is free from then on. Theirs could not be committed either.
    """
    with connection.cursor() as cursor:
        cursor.execute(BREAK_OFF_LOST, [AT_WORK, AT_WORK])
        (count,) = cursor.fetchone()
    if count:
        log.warning("%d transactions of workers that lost their leases were ended.", count)
    return int(count)


@contextmanager
def pressing() -> Iterator[None]:
    """Break off, in this block, workers that hold a lock which this connection waits for longer than PRESSING_SECONDS,
    and any other process that stands still with it. One that is at work, as a colleague's request, is waited for.
    """
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with meanwhile(lambda: _press(pid), every=PRESSING_SECONDS, name="pressing"):
        yield


def _press(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(BREAK_OFF_HOLDERS, [pid, WORKER, PRESSING_SECONDS])
        (count,) = cursor.fetchone()
    if count:
        log.warning("%d transactions that held up a cancel were ended.", count)


@contextmanager
def meanwhile(act: Callable[[], object], *, every: float, name: str) -> Iterator[None]:
    """Repeat an act in a thread while the block runs; see `repeat`."""
    ended = threading.Event()
    thread = repeat(act, ended, every=every, name=name)
    try:
        yield
    finally:
        ended.set()
        thread.join()  # or it might break off what comes next


def repeat(
    act: Callable[[], object], ended: threading.Event, *, every: float, name: str, at_once: bool = False
) -> threading.Thread:
    """Do an act in a thread every so many seconds, until the event, or until the act returns true. No error ends it."""

    def work(wait: float) -> None:
        while not ended.wait(wait):
            wait = every
            try:
                if act():
                    return
            except Exception:
                log.exception("The thread %s failed; it tries again.", name)
            finally:
                connection.close()

    thread = threading.Thread(target=work, args=(0 if at_once else every,), name=name, daemon=True)
    thread.start()
    return thread
