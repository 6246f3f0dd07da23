"""Batches that take far longer than the others of their operation: an idle worker does them too."""

from datetime import timedelta
from typing import Any

import django_rq
import pytest
from django.db.models import F
from django.db.models.functions import Now

from apps.operations import leasing, queueing, working
from apps.operations.ending import sweep
from apps.operations.leasing import Lease, Stopped, claim
from apps.operations.models import MAY_RUN_TWICE, Batch, Operation
from apps.operations.workers.limits import HeldError
from apps.operations.workers.stragglers import claim_backup
from apps.operations.working import perform_batch, work_batch
from benchbench.errors import BenchbenchError, UnfitWorkerError
from tests.operations.adding import Adding, start_adding
from tests.sessions import elsewhere, until_waited_for

pytestmark = pytest.mark.django_db(transaction=True)


def make_straggler(seconds: float = 100, **payload: Any) -> Batch:
    """Return a batch that a worker began so long ago; the other one of its operation was done in no time."""
    django_rq.get_queue("default").empty()
    operation = start_adding({"number": 1}, {"number": 2, MAY_RUN_TWICE: True} | payload)
    finished, late = operation.batches.order_by("ordinal")
    assert perform_batch(finished.pk, owner="quick")
    claimed = claim(late.pk, "slow")
    Batch.objects.filter(pk=late.pk).update(started_at=Now() - timedelta(seconds=seconds))
    django_rq.get_queue("default").empty()
    return claimed


def store(batch: Batch, number: int = 2) -> None:
    with Lease(batch).commit({"number": number}):
        pass


def assert_done_once(batch: Batch, owner: str, handler: Adding) -> None:
    batch = Batch.objects.select_related("operation").get(pk=batch.pk)
    assert (batch.state, batch.attempts, batch.lease_owner, batch.error) == ("done", 1, owner, "")
    assert (batch.operation.status, handler.finalised) == ("completed", 1)
    assert sum(batch.operation.batches.values_list("result__number", flat=True)) == 3


def test_backup_that_commits_first_wins_and_the_other_stops(handler, monkeypatch):
    late = make_straggler()
    assert sweep() == 1
    assert sweep() == 0  # its job waits
    assert queueing.list_job_ids("default") == {queueing.name_job(late)}
    work_batch(late.pk)
    lease = Lease(late)
    monkeypatch.setattr(leasing, "CHECK_SECONDS", 0.0)
    for stop in (lease.check, lambda: store(late, 1000)):
        with pytest.raises(Stopped):
            stop()
    assert lease._renew() is True  # it must end soon
    lease.__exit__()  # or its deadline stays with this process
    won = Batch.objects.get(pk=late.pk)
    assert won.finished_at - won.started_at < timedelta(seconds=90)  # of the backup
    assert_done_once(late, won.backup_owner, handler)


def test_worker_that_commits_before_its_backup_wins(handler):
    late = make_straggler()
    backup = claim_backup(late.pk, "idle")
    assert Lease(backup)._renew() is False
    store(late)
    with pytest.raises(Stopped):
        store(backup, 1000)
    assert sweep() == 0
    assert_done_once(late, "slow", handler)


@pytest.mark.parametrize("first", ["slow", "idle"])
def test_of_two_commits_at_once_the_second_stores_nothing(handler, first):
    late = make_straggler()
    attempts = {"slow": late, "idle": claim_backup(late.pk, "idle")}
    winner, loser = attempts.pop(first), *attempts.values()
    stored = []

    def store_late() -> None:
        with Lease(loser).commit({"number": 1000}):
            stored.append(loser)

    with Lease(winner).commit({"number": 2}):
        second = elsewhere(store_late)
        until_waited_for(second)
    assert isinstance(second.exception(timeout=60), Stopped)
    assert stored == []
    sweep()
    assert_done_once(late, first, handler)


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": 0},
        {MAY_RUN_TWICE: False},
        {"row": {"backup_owner": "another"}},
        {"row": {"waits_for": "the host"}},
        {"row": {"lease_until": Now() - timedelta(seconds=1)}},
        {"others": {"state": "pending", "attempts": 9}},
        {"others": {"started_at": F("finished_at") - timedelta(seconds=60)}},
        {"factor": 0},
    ],
    ids=str,
)
def test_other_batches_are_not_done_twice(handler, settings, change):
    settings.BENCHBENCH_STRAGGLER_FACTOR = change.pop("factor", 3)
    row, remaining = change.pop("row", {}), change.pop("others", {})
    late = make_straggler(**change)
    Batch.objects.filter(pk=late.pk).update(**row)
    Batch.objects.exclude(pk=late.pk).update(**remaining)
    assert claim_backup(late.pk, "idle") is None


def test_its_own_worker_and_unfit_ones_are_no_backup(handler):
    late = make_straggler()
    Operation.objects.update(unfit_workers={"unfit": "another revision"})
    assert [claim_backup(late.pk, owner) for owner in ("slow", "unfit")] == [None, None]
    assert claim_backup(late.pk, "idle") is not None


@pytest.mark.parametrize(
    "error", [OSError("away"), BenchbenchError("not here"), HeldError("held"), UnfitWorkerError("")]
)
def test_failing_backup_costs_no_attempt(handler, monkeypatch, error):
    late = make_straggler()

    def fail(batch: Batch, lease: Lease) -> None:
        lease.report(1, {"number": 1000}, always=True)
        raise error

    monkeypatch.setattr(handler, "perform", fail)
    assert perform_batch(late.pk, owner="idle")
    row = Batch.objects.get(pk=late.pk)
    assert (row.state, row.attempts, row.lease_owner, row.result, row.error) == ("running", 1, "slow", {}, "")
    store(late)
    sweep()
    assert_done_once(late, "slow", handler)


def test_failing_worker_and_committing_backup_do_not_deadlock(handler):
    late = make_straggler()
    backup = claim_backup(late.pk, "idle")
    with Lease(backup).commit({"number": 2}):
        failing = elsewhere(lambda: working._end_attempt(late, "No.", final=True))
        until_waited_for(failing)
    assert failing.result(timeout=60) is False
    sweep()
    assert_done_once(late, "idle", handler)


def test_new_attempt_ends_the_backup(handler):
    late = make_straggler()
    backup = claim_backup(late.pk, "idle")
    Batch.objects.filter(pk=late.pk).update(lease_until=Now() - timedelta(seconds=1))
    assert claim(late.pk, "third") is not None
    with pytest.raises(Stopped):
        store(backup)
