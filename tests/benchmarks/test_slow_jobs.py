"""A real worker while a receiver of notices is slow, and while many schedules are due: batches hardly wait."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import django_rq
import pytest
from django.conf import settings
from django.utils import timezone

from apps.execution.launching import launch
from apps.operations.models import Batch
from apps.records.models import Notice, Repeat, Schedule
from tests.created import create_benchmark
from tests.library import make_library
from tests.waiting import until

pytestmark = [pytest.mark.thorough, pytest.mark.django_db(transaction=True)]
SCHEDULES = int(os.environ.get("BENCHBENCH_SCHEDULES", "30"))
SLOW_SECONDS = 8.0


@pytest.fixture
def start_worker(process_environment: dict[str, str]) -> Iterator[Callable[..., None]]:
    workers = []

    def start(**environment: str) -> None:
        command = [sys.executable, "manage.py", "worker"]
        env = process_environment | {"BENCHBENCH_SWEEP_SECONDS": "1"} | environment
        workers.append(subprocess.Popen(command, cwd=settings.BASE_DIR, env=env, start_new_session=True))

    yield start
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    for name in settings.RQ_QUEUES:
        django_rq.get_queue(name).empty()


def measure(benchmark: Any) -> float:
    """Run a benchmark in the worker; return its seconds."""
    started = time.monotonic()
    operation = launch(benchmark)
    until(lambda: type(operation).objects.get(pk=operation.pk).finished_at, "the end of the benchmark")
    return time.monotonic() - started


def test_slow_receiver_does_not_slow_a_benchmark(receiver, declare, start_worker):
    library = make_library()
    first, second = (
        create_benchmark(library, name=name, matrix={"search_modes": ["sparse", "dense"]}) for name in ("a", "b")
    )
    start_worker(BENCHBENCH_ENGINES=settings.BENCHBENCH_ENGINES)
    measure(first)  # which loads what later ones find loaded
    alone = measure(create_benchmark(library, name="c", matrix={"search_modes": ["sparse", "dense"]}))
    receiver.seconds = SLOW_SECONDS
    schedule = Schedule.objects.create(name="nightly", benchmark=first, cron="0 3 * * *")
    repeat = Repeat.objects.create(schedule=schedule, due_at=timezone.now())
    for number in range(6):
        values = {"destination": "team", "payload": {"state": "red", "number": number}, "due_at": timezone.now()}
        Notice.objects.create(repeat=repeat, **values)
    until(lambda: receiver.requests, "the first notice")
    neighbour = measure(second)
    print(f"\nA benchmark alone {alone:.1f} s, beside a slow receiver {neighbour:.1f} s.")
    assert neighbour < max(3 * alone, alone + SLOW_SECONDS / 2)


@pytest.mark.long
def test_many_due_schedules_do_not_starve_batches(start_worker):
    library = make_library()
    template, urgent = (
        create_benchmark(library, name=name, matrix={"search_modes": ["sparse"]}) for name in ("a", "b")
    )
    due = timezone.now() - timedelta(days=1)
    Schedule.objects.bulk_create(
        Schedule(name=f"nightly {number}", benchmark=template, cron="0 3 * * *", next_run=due)
        for number in range(SCHEDULES)
    )
    start_worker()
    until(Repeat.objects.exists, "the first start")
    operation = launch(urgent)
    began = time.monotonic()
    until(lambda: Batch.objects.filter(operation=operation, state="done").exists(), "the first batch")
    waited = time.monotonic() - began
    started = Repeat.objects.count()
    until(lambda: Repeat.objects.count() == SCHEDULES, "all starts")
    seconds = time.monotonic() - began
    print(f"\nA batch waited {waited:.1f} s; {started} of {SCHEDULES} schedules had started, all in {seconds:.1f} s.")
    assert started < SCHEDULES / 2
