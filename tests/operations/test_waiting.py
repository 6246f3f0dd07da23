"""A batch that waits for its host says what for, and an operation how far it is."""

import fcntl
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections
from django.db.models import DateTimeField, Value
from django.utils import timezone

from apps.collections.models import Collection
from apps.operations import progress, queueing
from apps.operations.hosts import Holder, list_holders, lock_host, note_holder
from apps.operations.launching import cancel_operation, start_operation
from apps.operations.leasing import claim
from apps.operations.metrics import load_counts
from apps.operations.models import Batch, Operation, Status
from apps.operations.progress import build_common_fields, compute_progress
from apps.operations.waiting import REPORT_SECONDS, describe_wait
from apps.operations.working import perform_batch
from tests.operations.adding import Adding, start_adding
from tests.waiting import HANG_SECONDS, until

pytestmark = pytest.mark.django_db(transaction=True)
HOST = "quiet"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def start(owner: User | None = None, team: Group | None = None, **payload: Any) -> Operation:
    subject = Collection.objects.create(name=str(payload), owner=owner, team=team)
    return start_operation(Operation.Kind.RESOLVE, subject_id=subject.pk, batches=[({"number": 1, **payload}, 1)])


@pytest.fixture
def begun() -> threading.Event:
    """Set once a batch that `holds` is at work: it is claimed before, while another may still take the host."""
    return threading.Event()


@pytest.fixture
def release_batches(
    handler: Adding, begun: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> Iterator[threading.Event]:
    """While it is not set, a batch whose payload says `holds` does not end."""
    release = threading.Event()
    add = handler.perform

    def perform(batch: Any, lease: Any) -> None:
        if batch.payload.get("holds"):
            begun.set()
            release.wait(HANG_SECONDS)
        add(batch, lease)

    monkeypatch.setattr(handler, "perform", perform)
    yield release
    release.set()


@pytest.fixture
def work() -> Iterator[Callable[[Operation], None]]:
    """Work an operation's batch in a thread, as a worker of its own would."""
    threads = []

    def begin(operation: Operation) -> None:
        def act() -> None:
            perform_batch(operation.batches.get().pk, owner=f"{HOST}:{operation.pk}")
            connections.close_all()

        threads.append(threading.Thread(target=act))
        threads[-1].start()
        until(lambda: operation.batches.exclude(state="pending").exists())

    yield begin
    for thread in threads:
        thread.join(HANG_SECONDS)


def assert_waits(second: Operation, timed: Operation, begun: threading.Event, work: Any, holder: str) -> None:
    """Assert that while one holds the host alone, another says who that is."""
    work(timed)
    assert begun.wait(HANG_SECONDS)
    work(second)
    until(lambda: describe_wait(second))
    expected = rf"Waits for the host {HOST}: {holder} has run alone on it since {MOMENT}\."
    assert re.fullmatch(expected, describe_wait(second) or "")


def test_it_names_the_isolated_work_until_its_end(release_batches, begun, work):
    timed, second = start(alone=True, holds=True), start()
    assert_waits(second, timed, begun, work, f'the isolated {timed.kind} "{timed.subject}"')
    assert describe_wait(timed) is None
    claimed_at: Any = second.batches.get().started_at
    release_batches.set()
    until(lambda: second.batches.get().state == "done")
    second.refresh_from_db()
    assert describe_wait(second) is None
    finished: Any = second.batches.get()
    assert finished.waits_for == ""
    assert finished.started_at - claimed_at >= timedelta(seconds=REPORT_SECONDS), "its time does not include waiting"


def test_queued_operation_names_the_isolated_work(release_batches, begun, work, monkeypatch):
    """All workers of the host are busy with it: the other has no batch that could say so."""
    monkeypatch.setattr("apps.operations.leasing.socket.gethostname", lambda: HOST)
    timed, second = start(alone=True, holds=True), start()
    queueing.announce_worker("me", ["default"])
    try:
        assert describe_wait(second) is None
        work(timed)
        assert begun.wait(HANG_SECONDS)
        name = f'the isolated {timed.kind} "{timed.subject}"'
        expected = rf"Waits for the host {HOST}: {name} has run alone on it since {MOMENT}\."
        assert re.fullmatch(expected, describe_wait(second) or "")
        release_batches.set()
        until(lambda: timed.batches.get().state == "done")
        until(lambda: describe_wait(second) is None)
    finally:
        queueing.retire_worker("me", ["default"])


def test_operation_without_a_worker_reports_it(db):
    operation = start()
    nobody = "Waits for a worker. No worker serves the queue default: start one with `benchbench worker`."
    assert describe_wait(operation) == nobody
    queueing.announce_worker("me", ["default"])
    try:
        assert describe_wait(operation) is None
    finally:
        queueing.retire_worker("me", ["default"])
    assert describe_wait(operation) == nobody


def test_isolated_operation_reports_waiting_for_an_idle_host(release_batches, begun, work):
    second, timed = start(holds=True), start(alone=True)
    work(second)
    assert begun.wait(HANG_SECONDS)
    work(timed)
    until(lambda: describe_wait(timed))
    assert re.fullmatch(
        rf"Waits until the host {HOST} is free: times are measured without other work on it\. "
        rf"Running on it: the resolve operation {second.pk}, since {MOMENT}\.",
        describe_wait(timed) or "",
    )
    release_batches.set()


@pytest.mark.parametrize("shared", [False, True])
def test_work_hidden_from_watchers_is_not_named(release_batches, begun, work, shared):
    """Also of the same owner: a team sees what is shared with it."""
    ada = User.objects.create(username="ada")
    theirs: Any = {"owner": ada, "team": Group.objects.create(name="search")} if shared else {}
    timed, second = start(owner=ada, alone=True, holds=True), start(**theirs)
    assert_waits(second, timed, begun, work, "an isolated benchmark that you may not see")
    release_batches.set()


ELSEWHERE = """
import sys, time
from django.conf import settings
settings.configure(BENCHBENCH_LOCK_DIR=sys.argv[1])
from apps.operations.hosts import Holder, lock_host, note_holder
holder = Holder("bench.example.com (database other)", "benchmark", "5f0d", 4242, "2026-01-19T12:00:00Z", True)
with lock_host(alone=True, wait=time.sleep), note_holder(holder):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_site(settings: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process of another site, with settings and a database of its own, that holds the host alone."""
    command = [sys.executable, "-c", ELSEWHERE, str(settings.BENCHBENCH_LOCK_DIR)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_wait_reason_names_the_other_sites_operation(handler, work, other_site, settings, caplog):
    second = start()
    with caplog.at_level("INFO", "apps.operations.waiting"):
        work(second)
        until(lambda: describe_wait(second))
        wait = describe_wait(second)
    assert wait == (
        f"Waits for the host {HOST}: the isolated benchmark operation 5f0d in the process 4242 of bench.example.com "
        "(database other) has run alone on it since 2026-01-19T12:00:00Z."
    )
    assert wait in caplog.text
    assert build_common_fields(second)["waiting_for"] == wait
    other_site.kill()
    until(lambda: second.batches.get().state == "done")
    until(lambda: not list_holders())  # the batch is done before its process lets go of the host
    assert not list(Path(settings.BENCHBENCH_LOCK_DIR).glob("benchbench-holder-*")), "what the killed process left"


def test_waiting_is_not_time_of_the_batch(handler, work):
    timed, begun = start(alone=True), timezone.now()
    counter = ("benchbench_batch_seconds_sum", timed.kind)
    before = load_counts().get(counter, 0)
    holder = Holder("bench.example.com", "benchmark", "5f0d", 4242, "2026-01-19T12:00:00Z", False)
    with lock_host(alone=False, wait=time.sleep), note_holder(holder):
        work(timed)
        until(lambda: describe_wait(timed))
        assert str(describe_wait(timed)).endswith(
            "Running on it: the benchmark operation 5f0d in the process 4242 of bench.example.com, since "
            "2026-01-19T12:00:00Z."
        )
    until(lambda: load_counts().get(counter, 0) > before)
    took = (timezone.now() - begun).total_seconds()
    assert load_counts()[counter] - before < took - REPORT_SECONDS, "so long it waited at least"


@pytest.mark.parametrize("signal", [signal.SIGKILL, signal.SIGSTOP])
def test_notes_of_dead_processes_are_ignored(other_site, signal):
    assert [holder.process for holder in list_holders()] == [4242]
    other_site.send_signal(signal)
    until(lambda: list_holders() == [])


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"site": 1, "kind": 2, "operation": 3, "since": "x", "process": 4}'])
def test_a_note_that_cannot_be_read_is_passed_over(settings, note):
    path = Path(settings.BENCHBENCH_LOCK_DIR) / "benchbench-holder-0.json"
    path.write_text(note)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert list_holders() == []
    path.unlink()


def test_deleted_operation_does_not_block_others(handler, work):
    deleted, second = start(alone=True), start()
    claim(deleted.batches.get().pk, f"{HOST}:gone")
    cancel_operation(deleted)
    Collection.objects.filter(pk=deleted.subject_id).delete()
    with lock_host(alone=True, wait=time.sleep):
        work(second)
        until(lambda: describe_wait(second) or second.batches.get().error)
        answer = f"Waits for the host {HOST}: an isolated benchmark of another site runs alone on it."
        assert describe_wait(second) == answer
    until(lambda: second.batches.get().state == "done")


def test_operation_with_a_running_batch_is_not_waiting(handler):
    operation = start_adding({"number": 1}, {"number": 2})
    first, second = operation.batches.all()
    claim(first.pk, "one")
    claim(second.pk, "two")
    operation.refresh_from_db()
    operation.batches.filter(pk=first.pk).update(waits_for="Waits.")
    assert describe_wait(operation) is None
    operation.batches.update(waits_for="Waits.")
    assert describe_wait(operation) == "Waits."


@pytest.mark.parametrize(
    ("finished", "seconds", "eta"),
    [
        (0, 300, None),
        (10, 30, None),  # 1 % after half a minute: models were being loaded
        (10, 120, None),
        (20, 120, 5_880.0),
        (1, 3600, None),  # .1 % after an hour, as while a worker was away
        (100, 30, 270.0),
        (100, -30, None),  # the clock was set back
        (1000, 30, None),  # what concludes the work is not counted
    ],
)
def test_it_estimates_the_time_from_the_pace(db, monkeypatch, finished, seconds, eta):
    now = timezone.now()
    monkeypatch.setattr(progress, "Now", lambda: Value(now, DateTimeField()))
    running = {"kind": "index", "subject_id": uuid.uuid4(), "status": Status.RUNNING}
    operation = Operation.objects.create(**running, total_units=1000)
    begun = now - timedelta(seconds=seconds)
    Batch.objects.create(operation=operation, ordinal=0, units=1000, done_units=finished, started_at=begun)
    assert compute_progress(operation).eta_seconds == eta
