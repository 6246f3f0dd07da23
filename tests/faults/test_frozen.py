"""Workers frozen in a transaction: others do not wait; the transaction is rolled back."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from apps.execution.launching import cancel
from apps.operations.launching import cancel_operation
from apps.operations.models import Batch, Operation
from apps.operations.workers.limits import WORKER
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from tests.faults.kit import Crew, Scenario, scenarios, sessions, survive, until
from tests.faults.work import KINDS

STATED_SECONDS = 12
FROZEN = scenarios(
    "freeze",
    """
    benchmark: claimed, planned, encoded, reranked, searched, commit begun, amid COPY, commit stored, committed
    benchmark: finishing, finished
    index: claimed, chunked, encoded, commit begun, commit stored, words, finishing, finished
    store: prepared, filling, searching
    tree: summarised, stored, level grown
    isolated: searched, commit stored, finishing
    resolve: claimed, decided, stored
    measure: commit stored, finished
    """,
)

LATE = scenarios("freeze", "benchmark: searched, commit stored", settings={"BENCHBENCH_LEASE_SECONDS": 3600})


@pytest.mark.parametrize("scenario", LATE, ids=str)
def test_idle_worker_does_a_stragglers_batch_too(crew: Crew, scenario: Scenario) -> None:
    def age() -> None:
        Batch.objects.filter(state="running").update(started_at=Now() - timedelta(minutes=1))

    batches = survive(crew, scenario, meanwhile=age).batches
    backups = batches.exclude(backup_owner="")
    assert list(backups.values_list("lease_owner", "attempts")) == [(backups.get().backup_owner, 1)]


@pytest.mark.parametrize("scenario", FROZEN, ids=str)
def test_another_worker_finishes_a_frozen_workers_operation(crew: Crew, scenario: Scenario) -> None:
    survive(crew, scenario)


@pytest.mark.parametrize("point", ["benchmark: amid COPY", "benchmark: commit stored", "benchmark: finished"])
def test_a_cancel_does_not_wait_for_a_frozen_worker(crew: Crew, point: str) -> None:
    operation = KINDS["benchmark"].start()
    crew.start(point, "freeze").wait_for_fault()
    until(lambda: sessions("idle in transaction", "active"), "the frozen transaction")
    assert of_workers()
    started = time.monotonic()
    cancel(Benchmark.objects.get(pk=operation.subject_id))
    crew.slowest = time.monotonic() - started
    assert crew.slowest < 20  # two seconds, and what a busy machine makes of them
    assert Operation.objects.get(pk=operation.pk).status == "cancelled"


@pytest.mark.parametrize("point", ["index: words", "index: commit stored"])
def test_cancelled_build_of_a_frozen_worker_blocks_no_work(crew: Crew, point: str) -> None:
    """Its transaction stays open until this test lets it go: the sweep leaves what it holds to a later one."""
    hour = {"BENCHBENCH_LEASE_SECONDS": 3600, "BENCHBENCH_IDLE_TRANSACTION_SECONDS": 3600}
    operation = KINDS["index"].start()
    frozen = crew.start(point, "freeze", **hour)
    frozen.wait_for_fault()
    cancel_operation(operation)
    crew.start(**hour)
    crew.slowest = max(crew.sees_the_end_of(KINDS[kind].start()) for kind in ("resolve", "benchmark", "index"))
    frozen.kill()
    index = Index.objects.filter(pk=operation.subject_id)
    until(lambda: index.get().chunk_set_id is None, "what was cancelled to be freed", within=crew.limit)
    assert index.get().status == "cancelled"


def of_workers() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_stat_activity WHERE starts_with(application_name, %s)", [WORKER])
        return int(cursor.rowcount)


@pytest.mark.parametrize("point", ["benchmark: commit stored", "benchmark: finished"])
def test_other_work_continues_despite_a_frozen_worker(crew: Crew, point: str) -> None:
    """Its transactions stay open for an hour here: nothing of it is needed by others."""
    hour = {"BENCHBENCH_LEASE_SECONDS": 3600, "BENCHBENCH_IDLE_TRANSACTION_SECONDS": 3600}
    KINDS["benchmark"].start()
    worker = crew.start(point, "freeze", **hour)
    worker.wait_for_fault()
    until(lambda: worker.is_frozen, "the worker to freeze")
    frozen = sessions()  # its sweep may have been in a transaction too
    remaining = [KINDS[kind].start() for kind in ("benchmark", "index", "resolve")]
    crew.start(**hour)
    for operation in remaining:
        crew.slowest = max(crew.slowest, crew.sees_the_end_of(operation))
        assert Operation.objects.get(pk=operation.pk).status == "completed"
    until(lambda: sessions("idle in transaction") <= frozen, "only the frozen worker to have open transactions")
    assert sessions("idle in transaction")
