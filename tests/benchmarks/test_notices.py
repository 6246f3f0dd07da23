"""Notices sent to a real receiver on this machine: once, again after a failure, and after a worker was killed."""

import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from typing import Any

import django_rq
import pytest
from django.db import connection
from django.utils import timezone
from rq.scheduler import RQScheduler

from apps.operations.queueing import NOTICES, SCHEDULES
from apps.records.models import Notice, Schedule
from apps.verdicts.schedules.jobs import list_notices
from apps.verdicts.schedules.notifying import GIVE_UP, list_destinations, send
from apps.verdicts.schedules.saving import save_schedule
from benchbench.process import reset_all
from tests.benchmarks.gated import GOOD, make_gated, search
from tests.benchmarks.receiver import SECRET
from tests.created import create_benchmark
from tests.factories import make_schedule
from tests.library import make_library
from tests.waiting import until


def make_notice(**fields: Any) -> Notice:
    schedule = make_schedule(search(make_gated(), GOOD))
    values = {"destination": "team", "payload": {"state": "red"}, "due_at": timezone.now(), **fields}
    return Notice.objects.create(repeat=schedule.repeats.get(), **values)


@pytest.fixture
def notice(db: None, declare: Any) -> Notice:
    return make_notice()


def test_notice_is_signed_and_sent_once(notice, receiver):
    assert list_destinations() == ["team"]
    send(str(notice.pk))
    send(str(notice.pk))
    [(headers, body)] = receiver.requests
    assert json.loads(body) == {"id": str(notice.pk), "state": "red"}
    assert headers["Idempotency-Key"] == str(notice.pk)
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-BenchBench-Signature"] == f"sha256={digest}"
    notice.refresh_from_db()
    assert notice.delivered_at
    assert notice.status_text == "sent to team"


def test_receiver_that_is_busy_is_asked_again_at_once(notice, receiver):
    receiver.statuses = [503]
    send(str(notice.pk))
    first, second = (headers["Idempotency-Key"] for headers, _ in receiver.requests)
    assert first == second
    assert Notice.objects.get().delivered_at


def test_receiver_that_is_down_gets_the_notice_later(notice, receiver, declare):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        declare(f"http://127.0.0.1:{closed.getsockname()[1]}/hooks")
        before = timezone.now()
        send(str(notice.pk))
    notice.refresh_from_db()
    assert notice.status_text.startswith("waits for team (The receiver team refuses or breaks connections")
    assert SECRET not in notice.error
    assert before + timedelta(minutes=1) <= notice.due_at <= timezone.now() + timedelta(minutes=1)
    assert [at for pk, at in list_notices() if pk == notice.pk] == [notice.due_at]
    declare()
    Notice.objects.update(due_at=timezone.now())
    send(str(notice.pk))
    assert receiver.requests == [], "it has just failed"
    reset_all()
    send(str(notice.pk))
    assert len(receiver.requests) == 1


def test_slow_receiver_is_asked_once_for_all_its_notices(notice, receiver, declare):
    declare(more=", timeouts: {total: 0.3}")
    receiver.seconds = 3.0
    notices = [notice, *(Notice.objects.create(**values_of(notice)) for _ in range(9))]
    for each in notices:
        send(str(each.pk))
    assert len(receiver.requests) == 1, "one limit of time, not ten"
    assert [one.due_at <= timezone.now() for one in Notice.objects.order_by("created_at")] == [False] + [True] * 9


def test_receiver_gets_one_notice_at_a_time(notice, receiver, declare):
    second = Notice.objects.create(**values_of(notice))
    lock = django_rq.get_connection("default").lock("benchbench:notices:team", timeout=60)
    lock.acquire()
    send(str(second.pk))
    assert receiver.requests == []
    lock.release()
    send(str(second.pk))
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("statuses", [[503, 204], [500]])
def test_superseded_notice_is_not_sent_after_its_failure(transactional_db, notice, receiver, statuses):
    """The gate turns again while the receiver refuses the first notice, in the first or the last attempt."""
    receiver.statuses = statuses
    receiver.act = lambda: supersede(notice)
    send(str(notice.pk))
    assert len(receiver.requests) == 1
    send(str(notice.pk))
    assert len(receiver.requests) == 1
    notice.refresh_from_db()
    assert (notice.due_at, notice.error, notice.delivered_at) == (None, "The gate turned again first.", None)


def test_superseded_notice_that_arrived_is_said_to_be_sent(transactional_db, notice, receiver):
    receiver.act = lambda: supersede(notice)
    send(str(notice.pk))
    notice.refresh_from_db()
    assert notice.status_text == "sent to team"
    assert notice.due_at is None


def test_receiver_decides_when_the_next_request_comes(notice, receiver):
    receiver.statuses, receiver.headers = [503], {"Retry-After": "50"}
    Notice.objects.update(created_at=timezone.now())
    before = timezone.now()
    send(str(notice.pk))
    assert len(receiver.requests) == 1
    notice.refresh_from_db()
    assert notice.due_at >= before + timedelta(seconds=50)


def values_of(notice: Notice) -> dict[str, Any]:
    names = ("repeat", "destination", "payload", "due_at")
    return {name: getattr(notice, name) for name in names}


def supersede(notice: Notice) -> None:
    """What the end of the next repeat does to the notices before."""
    try:
        waiting = Notice.objects.filter(pk=notice.pk, due_at__isnull=False)
        waiting.update(due_at=None, error="The gate turned again first.")
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("url", "private", "sentence"),
    [(None, "false", "is not allowed"), ("https://[::1]/", "false", "is not allowed")],
)
def test_private_address_gets_nothing_unless_declared(db, receiver, declare, url, private, sentence):
    declare(url or f"https://127.0.0.1:{receiver.server_port}/", private)
    notice = make_notice()
    send(str(notice.pk))
    notice.refresh_from_db()
    assert sentence in notice.error
    assert receiver.requests == []


def test_redirect_is_refused_and_given_up_after_a_day(notice, receiver):
    receiver.statuses = [302]
    Notice.objects.update(created_at=timezone.now() - GIVE_UP)
    send(str(notice.pk))
    notice.refresh_from_db()
    assert len(receiver.requests) == 1
    assert notice.due_at is None
    assert notice.status_text.startswith("given up: team (The receiver team answered with a redirect")


@pytest.mark.thorough
def test_workers_repeat_compare_and_notify_though_one_is_killed(
    transactional_db, receiver, declare, settings, process_environment
):
    """RQ's scheduler starts a benchmark in real workers; the first is killed while it sends the notice."""
    benchmark = create_benchmark(make_library(), name="words", matrix={"search_modes": ["sparse"]})
    rules = "latency_ms: {mean: 0}"  # which no search reaches
    schedule = save_schedule(
        Schedule(name="nightly", benchmark=benchmark, cron="0 3 * * *", rules=rules, notify="team")
    )
    Schedule.objects.update(next_run=timezone.now() - timedelta(days=1))
    receiver.seconds = 60.0
    environment = {"BENCHBENCH_SWEEP_SECONDS": "1", "BENCHBENCH_ENGINES": settings.BENCHBENCH_ENGINES}
    command = [sys.executable, "manage.py", "worker"]
    workers: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        workers.append(
            subprocess.Popen(
                command, cwd=settings.BASE_DIR, env=process_environment | environment, start_new_session=True
            )
        )

    try:
        start()
        until(lambda: bool(receiver.requests), "the first request")
        os.killpg(workers[0].pid, signal.SIGKILL)
        receiver.seconds = 0.0
        locks = [*map(RQScheduler.get_locking_key, (SCHEDULES, NOTICES)), "benchbench:notices:team"]
        django_rq.get_connection("default").delete(*locks)  # as after they have expired
        Notice.objects.update(due_at=timezone.now())  # as after its lease
        start()
        until(lambda: Notice.objects.get().delivered_at is not None, "the delivery")
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    first, second = (json.loads(body) for _, body in receiver.requests)
    assert first == second
    assert (first["state"], first["failed"][0]["outcome"]) == ("red", "failed")
    assert first["id"] == str(Notice.objects.get().pk)
    [repeat] = schedule.repeats.all()
    assert (repeat.turned, repeat.outcome) == ("red", "failed")
    assert repeat.result == first["verdict"]
