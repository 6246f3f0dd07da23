"""Cancels next to others that hold the operation: who is frozen is broken off, who is at work is waited for."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from apps.operations.launching import cancel_operation
from apps.operations.models import Operation, Status
from apps.operations.workers import limits
from benchbench.errors import ConflictError
from tests.operations.adding import Adding, start_adding
from tests.sessions import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operation(handler: Adding, monkeypatch: pytest.MonkeyPatch) -> Operation:
    # A worker in this process, of an earlier test, named the sessions that follow: a cancel ends those of workers.
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "application_name", "")
    monkeypatch.setattr(limits, "PRESSING_SECONDS", 0.3)
    return start_adding()


@pytest.fixture
def other_role(operation: Operation) -> Iterator[str]:
    """The name and the password of another role of the server, which may change operations."""
    role, tables = f"other_{uuid.uuid4().hex}", Operation._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{role}'")
        cursor.execute(f"GRANT SELECT, UPDATE ON {tables} TO {role}")
    yield role
    with connection.cursor() as cursor:
        cursor.execute(f"REVOKE ALL ON {tables} FROM {role}")
        cursor.execute(f"DROP ROLE {role}")


# One statement that goes on until the test gives up its lock: between two a busy machine may leave a session idle.
WORKING = "DO $$ BEGIN WHILE NOT pg_try_advisory_xact_lock(5) LOOP PERFORM pg_sleep(.01); END LOOP; END $$"


@pytest.fixture
def end_work() -> Iterator[Callable[[], None]]:
    """Let WORKING go on; return what ends it."""

    def execute(statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    execute("SELECT pg_advisory_lock(5)")
    yield lambda: execute("SELECT pg_advisory_unlock_all()")
    execute("SELECT pg_advisory_unlock_all()")


def until_works(holder: Future[Any]) -> None:
    """Return once a session is at WORKING."""
    with connection.cursor() as cursor:
        while not cursor.execute(
            "SELECT FROM pg_stat_activity WHERE state = 'active' AND query = %s", [WORKING]
        ).rowcount:
            assert not holder.done(), holder.result()


@contextmanager
def lock_operation(
    operation: Operation, statement: str = "", *, called: str = "", role: str = "", until: Any
) -> Iterator[Any]:
    """Hold an operation in another session that says nothing more, or repeats a statement, until the event."""
    locked = threading.Event()

    def hold() -> None:
        if role:
            connection.settings_dict = connection.settings_dict | {"USER": role, "PASSWORD": role}
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [called])
            Operation.objects.filter(pk=operation.pk).update(error="")
            locked.set()
            while not until.wait(0.05):
                if statement:
                    cursor.execute(statement)

    holder = elsewhere(hold)
    try:
        assert locked.wait(60)
        yield holder
    finally:
        until.set()
        holder.exception(60)


def test_concurrent_cancels_interrupt_only_the_stalled_session(operation):
    with lock_operation(operation, until=threading.Event()) as holder:
        cancels = [elsewhere(lambda: cancel_operation(Operation.objects.get(pk=operation.pk))) for _ in range(3)]
        errors = [cancel.exception(60) for cancel in cancels]
    assert isinstance(holder.exception(), OperationalError)
    assert errors.count(None) == 1
    assert [str(error) for error in errors if error is not None] == [
        "This operation has already ended (cancelled), so it cannot be cancelled."
    ] * 2


def test_cancel_interrupts_a_running_statement(operation):
    with lock_operation(operation, "SELECT pg_sleep(600)", called=limits.WORKER, until=threading.Event()) as holder:
        cancel_operation(operation)
    assert isinstance(holder.exception(), OperationalError), "it is not waited for"


def test_cancel_waits_for_an_active_session(operation, end_work):
    ended = threading.Event()
    with lock_operation(operation, WORKING, until=ended) as holder:
        until_works(holder)
        cancelled = elsewhere(lambda: cancel_operation(Operation.objects.get(pk=operation.pk)))
        with pytest.raises(TimeoutError):
            cancelled.result(2)  # it has pressed six times
        ended.set()
        end_work()
        assert cancelled.result(60) is None
    assert holder.exception() is None
    operation.refresh_from_db()
    assert operation.status == Status.CANCELLED


def test_a_cancel_leaves_a_worker_alone_that_waits_itself(operation):
    """Behind one that is frozen, and before the cancel: only that one is ended."""

    def wait() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [limits.WORKER])
            Operation.objects.filter(pk=operation.pk).update(error="")

    with lock_operation(operation, until=threading.Event()) as holder:
        worker = elsewhere(wait)
        until_waits(limits.WORKER, worker)
        cancel_operation(operation)
        assert worker.result(60) is None
    assert isinstance(holder.exception(), OperationalError)


def test_a_cancel_leaves_a_session_of_another_role_alone(operation, other_role, settings):
    """To end it takes rights that a site need not have, and an error for one would leave all others as they are."""
    settings.BENCHBENCH_LOCK_SECONDS = 1
    answer = pytest.raises(ConflictError, match="Another process is changing this operation")
    with lock_operation(operation, role=other_role, until=threading.Event()) as holder, answer:
        cancel_operation(operation)
    assert holder.exception() is None


def test_a_cancel_that_waits_too_long_says_so(operation, settings, end_work):
    settings.BENCHBENCH_LOCK_SECONDS = 1
    with lock_operation(operation, WORKING, until=threading.Event()) as holder:
        until_works(holder)
        with pytest.raises(ConflictError, match="Another process is changing this operation"):
            cancel_operation(operation)
        end_work()
    assert Operation.objects.get(pk=operation.pk).status == Status.PENDING


def test_a_worker_s_sessions_bear_its_name(monkeypatch):
    """A batch has a name of its own while it is at work; after it the worker's comes back."""
    options = connection.settings_dict["OPTIONS"]
    monkeypatch.setitem(options, "application_name", options.get("application_name", ""))  # as it was, afterwards

    def names() -> list[str]:
        limits.call_sessions(limits.WORKER)
        with limits.name_session(5, 2):
            during = session_name()
        return [during, session_name()]

    assert elsewhere(names).result(60) == [f"{limits.WORKER} 5.2", limits.WORKER]


def until_waits(name: str, future: Future[Any]) -> None:
    """Return once a session of this name waits for a lock, which is what the future does."""
    waits = "SELECT FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    with connection.cursor() as cursor:
        while not cursor.execute(waits, [name]).rowcount:
            assert not future.done(), future.result()


def session_name() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW application_name")
        return str(cursor.fetchone()[0])
