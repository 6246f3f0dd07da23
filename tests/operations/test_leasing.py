import re
import threading
import uuid
from datetime import timedelta
from unittest.mock import Mock

import django_rq
import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from apps.operations import ending, leasing, queueing
from apps.operations.ending import conclude, sweep
from apps.operations.launching import OperationActiveError, cancel_operation, start_operation
from apps.operations.leasing import Lease, Stopped, claim
from apps.operations.models import Batch, Operation, Status
from apps.operations.workers.limits import HeldError
from apps.operations.working import OperationFailedError, perform_batch, wait, work_batch
from benchbench.errors import BenchbenchError, ConflictError
from tests.operations.adding import batches, start_adding
from tests.sessions import elsewhere, finish_unblocked

pytestmark = pytest.mark.django_db(transaction=True)


def expire(batch: Batch) -> None:
    Batch.objects.filter(pk=batch.pk).update(lease_until=Now() - timedelta(seconds=1))


def test_expired_batch_is_reassigned_and_late_commit_refused(handler):
    operation = start_adding({"number": 1})
    lost = claim(batches(operation)[0].pk, "first")
    expire(lost)
    assert perform_batch(lost.pk, owner="second")
    with pytest.raises(Stopped), Lease(lost).commit({"number": 1000}):
        pass
    assert batches(operation)[0].result == {"number": 1}
    assert batches(operation)[0].attempts == 2


def test_commit_rolls_back_if_the_batch_is_taken_over(handler):
    operation = start_adding({"number": 1})
    lost = claim(batches(operation)[0].pk, "first")
    expire(lost)

    def store_and_lose() -> None:
        with Lease(lost).commit({"number": 1000}):
            Operation.objects.filter(pk=operation.pk).update(error="stored by the first")
            assert elsewhere(lambda: claim(lost.pk, "second")).result(timeout=60) is not None

    with pytest.raises(Stopped):
        store_and_lose()
    operation.refresh_from_db()
    assert operation.error == ""
    batch = batches(operation)[0]
    assert (batch.state, batch.lease_owner, batch.result) == (Batch.State.RUNNING, "second", {})


@pytest.mark.parametrize("next_owner", ["second", "first"], ids=["another worker", "the same worker"])
def test_superseded_attempt_stores_nothing(handler, next_owner):
    lost = claim(batches(start_adding({"number": 1}))[0].pk, "first")
    expire(lost)
    assert claim(lost.pk, next_owner) is not None
    with pytest.raises(Stopped), Lease(lost).lock_operation():
        pass


def test_commit_rolls_back_if_the_worker_crashes(handler):
    operation = start_adding({"number": 1}, {"number": 2})
    claimed = claim(batches(operation)[0].pk, "first")

    def write_half() -> None:
        with Lease(claimed).commit({"number": 1}):
            Operation.objects.filter(pk=operation.pk).update(error="half done")
            raise RuntimeError("the worker fell over")

    with pytest.raises(RuntimeError):
        write_half()
    operation.refresh_from_db()
    assert operation.error == ""
    assert batches(operation)[0].state == Batch.State.RUNNING


def test_it_completes_once_after_the_last_batch(handler):
    operation = start_adding({"number": 1}, {"number": 2})
    for batch in batches(operation):
        perform_batch(batch.pk, owner="only")
    assert conclude(operation) is False
    operation.refresh_from_db()
    assert (operation.status, handler.finalised) == (Status.COMPLETED, 1)


def test_it_runs_batches_that_a_batch_adds(handler):
    operation = wait(start_adding({"number": 1, "adds": [10, 20]}))
    assert sorted(handler.performed) == [1, 10, 20]
    assert (operation.total_units, operation.status) == (3, Status.COMPLETED)


def test_transient_errors_are_retried(handler):
    operation = wait(start_adding({"number": 1, "raises": 2}))
    assert handler.performed == [1, 1, 1]
    assert operation.status == Status.COMPLETED


def test_it_fails_with_the_error_after_three_attempts(handler):
    operation = start_adding({"number": 1, "raises": 9}, {"number": 2})
    answer = "OSError: [Errno 5] The disk is away: '…/7.bin'"  # and not where the files of the server lie
    with pytest.raises(OperationFailedError, match=re.escape(answer)):
        wait(operation)
    operation.refresh_from_db()
    assert operation.error == batches(operation)[0].error == answer
    assert (operation.status, handler.stopped, handler.finalised) == (Status.FAILED, ["failed"], 0)
    assert batches(operation)[0].attempts == 3


def test_user_facing_errors_are_not_retried(handler, monkeypatch):
    def refuse(batch: Batch, lease: Lease) -> None:
        raise BenchbenchError("The model is not here.")

    monkeypatch.setattr(handler, "perform", refuse)
    operation = start_adding({"number": 1})
    with pytest.raises(OperationFailedError, match=r"^The model is not here\.$"):
        wait(operation)
    assert batches(operation)[0].attempts == 1


def test_it_does_nothing_more_after_a_cancel(handler, monkeypatch):
    operation = start_adding({"number": 1}, {"number": 2})
    first, second = batches(operation)
    claimed = claim(first.pk, "worker")
    cancel_operation(operation)
    lease = Lease(claimed)
    monkeypatch.setattr(leasing, "CHECK_SECONDS", 0.0)
    with pytest.raises(Stopped):
        lease.check()
    assert claim(second.pk, "worker") is None
    with pytest.raises(ConflictError, match="already ended"):
        cancel_operation(operation)
    assert handler.stopped == ["cancelled"]


def test_errors_after_a_cancel_are_ignored(handler, monkeypatch, caplog):
    operation = start_adding({"number": 1})

    def find_nothing(batch: Batch, lease: Lease) -> None:
        cancel_operation(operation)  # and someone deletes what it was at
        raise Batch.DoesNotExist

    monkeypatch.setattr(handler, "perform", find_nothing)
    perform_batch(batches(operation)[0].pk, owner="worker")
    operation.refresh_from_db()
    assert (operation.status, operation.error) == ("cancelled", "")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_cancel_breaks_off_a_statement_under_way(handler):
    operation = start_adding({"number": 1})
    claimed = claim(batches(operation)[0].pk, "worker")
    canceller = threading.Timer(0.5, cancel_from_elsewhere, [operation])
    canceller.start()
    with pytest.raises(Stopped):
        take_long(Lease(claimed))
    assert Batch.objects.filter(state=Batch.State.RUNNING).exists()  # the connection is of use again
    canceller.join()


def test_other_statement_errors_are_not_replaced(handler):
    claimed = claim(batches(start_adding({"number": 1}))[0].pk, "worker")
    with pytest.raises(OperationalError, match="statement timeout"):
        take_long(Lease(claimed), timeout_ms=10)


def take_long(lease: Lease, *, timeout_ms: int = 0) -> None:
    with lease.interrupting(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(timeout_ms)])
        cursor.execute("SELECT pg_sleep(600)")


def cancel_from_elsewhere(operation: Operation) -> None:
    cancel_operation(operation)
    connection.close()


def test_it_refuses_a_second_active_operation_on_one_subject(handler):
    operation = start_adding({"number": 1})
    with pytest.raises(OperationActiveError):
        start_operation(Operation.Kind.RESOLVE, subject_id=operation.subject_id, batches=[({"number": 2}, 1)])


def test_sweep_requeues_batches_lost_by_workers_or_redis(handler):
    lost, waiting = batches(start_adding({"number": 1}, {"number": 2}))
    claim(lost.pk, "killed")
    expire(lost)
    django_rq.get_queue("default").empty()
    assert sweep() == 2
    assert sweep() == 0
    assert queueing.list_job_ids("default") == {f"batch-{lost.pk}-1", f"batch-{waiting.pk}-0"}


def test_conclude_does_not_wait_for_a_locked_operation(handler):
    operation = start_adding({"number": 1})
    batch = claim(batches(operation)[0].pk, "worker")
    handler.perform(batch, Lease(batch))
    with transaction.atomic():
        Operation.objects.select_for_update().get(pk=operation.pk)
        assert finish_unblocked(lambda: conclude(Operation.objects.get(pk=operation.pk))) is False
    assert conclude(operation) is True


def test_sweep_concludes_finished_operations(handler):
    operation = start_adding({"number": 1})
    batch = claim(batches(operation)[0].pk, "killed")
    handler.perform(batch, Lease(batch))
    sweep()
    operation.refresh_from_db()
    assert (operation.status, handler.finalised) == (Status.COMPLETED, 1)


def test_an_operation_without_work_is_complete_at_once(handler):
    operation = start_operation(Operation.Kind.RESOLVE, subject_id=uuid.uuid4(), batches=[])
    operation.refresh_from_db()
    assert (operation.status, handler.finalised) == (Status.COMPLETED, 1)


def test_sweep_fails_operations_that_could_not_finish(handler, monkeypatch):
    monkeypatch.setattr(handler, "finalise", Mock(side_effect=ArithmeticError("of its figures")))
    with monkeypatch.context() as claimed:
        claimed.setattr(handler, "stop", Mock(side_effect=HeldError("of its figures")))
        # As a web request does:
        operation = start_operation(Operation.Kind.RESOLVE, subject_id=uuid.uuid4(), batches=[])
    assert operation.is_active
    sweep()
    operation.refresh_from_db()
    assert (operation.status, operation.error) == (Status.FAILED, "ArithmeticError: of its figures")


def test_waiting_without_a_worker_ends_abandoned_operations(handler):
    finished, exhausted, failed = start_adding({"number": 1}), start_adding({"number": 2}), start_adding({"number": 3})
    last = claim(batches(finished)[0].pk, "killed")
    handler.perform(last, Lease(last))  # and killed before it could conclude
    for _ in range(3):
        assert claim(batches(exhausted)[0].pk, "killed") is not None
        expire(batches(exhausted)[0])
    Batch.objects.filter(operation=failed).update(state=Batch.State.FAILED, error="The disk is full.")
    assert wait(finished).status == Status.COMPLETED
    with pytest.raises(OperationFailedError, match="out of memory"):
        wait(exhausted)
    with pytest.raises(OperationFailedError, match=r"The disk is full\."):
        wait(failed)


@pytest.mark.thorough
def test_a_worker_goes_on_after_the_database_was_restarted(handler):
    first, second = start_adding({"number": 1}), start_adding({"number": 2})
    with psycopg.connect(settings.DATABASE_URL.replace("/benchbench?", "/postgres?"), autocommit=True) as administrator:
        work_batch(batches(first)[0].pk)
        connection.ensure_connection()
        personal = connection.connection.info.backend_pid
        ids = [batch.pk for batch in batches(second)]
        administrator.execute("SELECT pg_terminate_backend(%s)", [personal])
        work_batch(ids[0])
    second.refresh_from_db()
    assert second.status == Status.COMPLETED


def test_two_workers_commit_side_by_side(handler, settings):
    """One commit that takes long must not hold up another of the same operation."""
    settings.BENCHBENCH_LOCK_SECONDS = 1  # anyone who waits gets an error
    operation = start_adding({"number": 1}, {"number": 2})
    first, second = (claim(batch.pk, "worker") for batch in batches(operation))

    def commit_other() -> None:
        with Lease(second).commit({"number": 2}):
            pass

    with Lease(first).commit({"number": 1}):
        elsewhere(commit_other).result(timeout=60)
    assert [batch.state for batch in batches(operation)] == [Batch.State.DONE] * 2


@pytest.mark.parametrize(("alone", "renewed"), [(True, 0), (False, 1)])
def test_statistics_wait_for_a_batch_that_is_alone(handler, monkeypatch, alone, renewed):
    """Other work would disturb its times. A batch that shares its host does not wait, nor do others wait for it."""
    renewing = Mock()
    monkeypatch.setattr(ending, "renew_statistics", renewing)
    timed = start_adding({"number": 2, "alone": alone})
    claim(batches(timed)[0].pk, "other")
    perform_batch(batches(start_adding({"number": 1}))[0].pk, owner="worker")
    assert renewing.call_count == renewed
