"""Workers that cannot do a batch give it back: another does it, or it fails with the reason."""

from datetime import timedelta
from unittest.mock import Mock

import django_rq
import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from apps.operations import leasing, queueing, working
from apps.operations.ending import sweep
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation, Status
from apps.operations.waiting import describe_wait
from apps.operations.workers.limits import HeldError
from apps.operations.working import OperationFailedError, perform_batch, wait
from benchbench.errors import UnfitWorkerError
from tests.operations.adding import Adding, start_adding
from tests.sessions import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)
SENTENCE = "The model m is wanted in revision 1, but revision 2 is installed."


@pytest.fixture(autouse=True)
def unfit(handler: Adding, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The owners that have another revision."""
    owners = {"unfit", "unfit too"}
    perform = handler.perform

    def compare(batch: Batch, lease: Lease) -> None:
        if batch.lease_owner in owners:
            raise UnfitWorkerError(SENTENCE)
        perform(batch, lease)

    monkeypatch.setattr(handler, "perform", compare)
    django_rq.get_queue("default").empty()
    return owners


@pytest.fixture
def operation(handler: Adding) -> Operation:
    return start_adding({"number": 1}, {"number": 2})


def take(operation: Operation, owner: str) -> list[bool]:
    """Let a worker have the job of each batch, and return which it took."""
    return [perform_batch(batch.pk, owner=owner) for batch in operation.batches.order_by("ordinal")]


def test_returned_batch_is_done_elsewhere_without_losing_an_attempt(operation):
    assert take(operation, "unfit") == [True, False]
    assert set(operation.batches.values_list("state", "attempts")) == {("pending", 0)}
    operation.refresh_from_db()
    assert describe_wait(operation) == f"Waits for another worker. {SENTENCE}"
    assert take(operation, "fit") == [True, True]
    operation.refresh_from_db()
    assert (operation.status, set(operation.batches.values_list("attempts", "error"))) == ("completed", {(1, "")})


def test_a_job_goes_on_to_the_other_workers(operation, monkeypatch):
    pauses: list[float] = []
    monkeypatch.setattr(working.time, "sleep", pauses.append)
    monkeypatch.setattr(working, "get_this_worker", lambda: "unfit")
    first, second = operation.batches.order_by("ordinal")
    queue = django_rq.get_queue("default")
    queue.empty()
    for batch in (first, second):
        working.work_batch(batch.pk)
    jobs = queue.get_job_ids()
    assert [name.rpartition("-")[0] for name in jobs] == [f"batch-{first.pk}-0", f"batch-{second.pk}-0"]
    assert pauses == [working.PASS_ON_SECONDS]  # after what it knew; what it found out may have been its only one
    assert sweep() == 0


def test_operation_without_a_fit_worker_fails_with_the_reason(operation):
    take(operation, "unfit")
    leave_for(operation, seconds=90)
    sweep()
    operation.refresh_from_db()
    assert (operation.status, operation.error) == (Status.FAILED, f"No worker can run this operation. {SENTENCE}")


def test_the_sweep_waits_for_no_lock(operation, handler, settings):
    settings.BENCHBENCH_LOCK_SECONDS = 1
    take(operation, "unfit")
    leave_for(operation, seconds=90)
    second = another()

    def sweep_elsewhere() -> int:
        with CaptureQueriesContext(connection) as statements:
            enqueued = sweep()
        assert not [query for query in statements if query["sql"].startswith('UPDATE "operations_operation"')]
        return enqueued

    with transaction.atomic():
        Operation.objects.select_for_update().get(pk=operation.pk)
        assert elsewhere(sweep_elsewhere).result(60) == 3  # two of this one, and the other's
    assert is_queued(second)


@pytest.mark.parametrize("error", [HeldError("of its index"), RuntimeError("of its handler")])
def test_sweep_continues_if_an_operation_cannot_be_failed(operation, handler, monkeypatch, error):
    take(operation, "unfit")
    leave_for(operation, seconds=90)
    second = another()
    monkeypatch.setattr(handler, "stop", Mock(side_effect=error))
    assert sweep() >= 1
    assert is_queued(second)
    operation.refresh_from_db()
    assert operation.is_active


@pytest.mark.parametrize("reason", ["given back just now", "another serves the queue", "another is at work"])
def test_it_waits_while_another_may_come(operation, reason):
    take(operation, "unfit")
    if reason != "given back just now":
        leave_for(operation, seconds=90)
    if reason == "another is at work":
        assert leasing.claim(operation.batches.order_by("ordinal")[1].pk, "fit")
    workers = ["unfit", "fit"] if reason == "another serves the queue" else ["unfit"]
    for owner in workers:
        queueing.announce_worker(owner, ["default"])
    try:
        sweep()
    finally:
        for owner in workers:
            queueing.retire_worker(owner, ["default"])
    operation.refresh_from_db()
    assert operation.is_active


def test_waiting_command_runs_batches_despite_unfit_workers(operation):
    take(operation, "unfit")
    queueing.announce_worker("unfit", ["default"])
    try:
        assert wait(operation).status == Status.COMPLETED
    finally:
        queueing.retire_worker("unfit", ["default"])


def test_an_unfit_command_fails_at_once(operation, unfit, monkeypatch):
    monkeypatch.setattr("apps.operations.working.make_owner", lambda: "unfit")
    with pytest.raises(
        OperationFailedError, match=r"No worker can run this operation\. The model m is wanted in revision 1"
    ):
        wait(operation)


def another() -> Operation:
    """An older operation, which the sweep comes to later, and whose job Redis has forgotten."""
    second = start_adding({"number": 3})
    Operation.objects.filter(pk=second.pk).update(created_at=Now() - timedelta(days=1))
    django_rq.get_queue("default").empty()
    return second


def is_queued(operation: Operation) -> bool:
    names = django_rq.get_queue("default").get_job_ids()
    return any(name.startswith(f"batch-{operation.batches.get().pk}-") for name in names)


def leave_for(operation: Operation, *, seconds: int) -> None:
    """Let time pass since the last that was done or given back."""
    operation.batches.filter(finished_at__isnull=False).update(finished_at=Now() - timedelta(seconds=seconds))
