"""Work the queues until stopped."""

import gc
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import django_rq
from django.conf import settings
from django.core.management.base import CommandParser
from django.db import close_old_connections
from redis.exceptions import RedisError
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from apps.operations import queueing, timing
from apps.operations.commands import UseCaseCommand
from apps.operations.ending import sweep
from apps.operations.leasing import get_this_worker
from apps.operations.workers import turns
from apps.operations.workers.jobs import OwnJob, work_aside
from apps.operations.workers.limits import WORKER, call_sessions, repeat
from apps.operations.workers.pool import Pool
from apps.operations.working import release
from benchbench.database.tables import explain_waiting, wait_until_it_fits

SIGN_OF_LIFE_SECONDS = 5
# Collections of the middle generation before a full one, which takes half a second once torch is loaded. With Python's
# 10, cheap batches spend a tenth of their time on these.
COLLECTED = 100
AWAY_SECONDS = 1.0  # pause of a worker that lost Redis before it reconnects


class Stop:
    """A flag for stopping a worker. Not a `threading.Event`, whose `set` would deadlock in a signal handler."""

    is_requested = False


class QueueWorker(SimpleWorker):
    """RQ's worker that runs jobs in its own process, once the database's tables match this code.

    It ends at any error of Redis, so `stop` records whether it was asked to stop.
    """

    stop: Stop

    def execute_job(self, job: Any, queue: Any) -> None:
        close_old_connections()  # the database may have restarted since the last job, and RQ does not check
        try:
            wait_until_it_fits()
            super().execute_job(job, queue)
        finally:
            close_old_connections()

    def reorder_queues(self, reference_queue: Any) -> None:
        """Serve quick jobs first, and a timed job and a batch in turns, because hundreds of timed jobs may be due."""
        if reference_queue.name != queueing.QUICK:
            has_timed = reference_queue.name == queueing.SCHEDULES
            self._ordered_queues = sorted(self.queues, key=lambda queue: has_timed and queue.name == queueing.SCHEDULES)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        self.stop.is_requested = True
        super().request_stop(signum, frame)


class Command(UseCaseCommand):
    help = """Work the queues until stopped (Ctrl-C ends after the current batch).

A worker keeps its models loaded, recovers work that other workers lost, and waits if Redis is down. This command starts
the worker as a child process and replaces it when it ends or hangs. Start one worker per GPU or core, on any machine
that reaches the database and Redis. Queues: gpu (indexes, benchmarks), default (resolving, measuring again, judging by
models). Operations on its queues take turns. Every worker runs quick jobs first (tried queries, states of judging
rounds), schedules and batches in turns, and sends notices in a thread. A second, small child runs only quick jobs, so
that they do not wait for batches (BENCHBENCH_QUICK_PROCESSES; not with --burst).

  benchbench worker
  benchbench worker gpu
  benchbench worker --burst
"""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "queues", nargs="*", default=["gpu", "default"], help="Queues to serve (default: gpu default)."
        )
        parser.add_argument("--burst", action="store_true", help="Stop when the queues are empty.")

    def act(self, **options: Any) -> None:
        queues = list(dict.fromkeys([queueing.QUICK, queueing.SCHEDULES, *options["queues"]]))
        quick = [] if options["burst"] else [self.serve_quick] * settings.BENCHBENCH_QUICK_PROCESSES
        Pool(queues, works=[partial(self.serve, queues), *quick], release=release).start(
            burst=options["burst"], logging_level="WARNING"
        )

    def serve(self, queues: list[str], burst: bool) -> None:
        """Run the pool's worker for batches."""
        every = settings.BENCHBENCH_SWEEP_SECONDS
        if burst:  # it ends once the queues are empty, so lost work must be in them first
            sweep_if_it_fits()
        scheduler = timing.make_scheduler()
        with self.present([*queues, queueing.NOTICES]) as stop:
            # In its own thread: a sweep may take long, and signs of life must not wait for it.
            repeat(sweep_if_it_fits, stop, every=every, name="sweep", at_once=not burst)
            timer = repeat(
                partial(timing.enqueue_due, scheduler), stop, every=timing.SECONDS, name="timer", at_once=True
            )
            repeat(partial(work_aside, queueing.NOTICES), stop, every=timing.SECONDS, name="notices")
            try:
                self.work(queues, burst=burst)
                if burst:
                    work_aside(queueing.NOTICES)
            finally:
                stop.set()
                timer.join(timeout=SIGN_OF_LIFE_SECONDS)
                with suppress(RedisError):  # its lock expires anyway
                    scheduler.release_locks()

    def serve_quick(self, burst: bool) -> None:
        """Run the pool's worker for quick jobs alone."""
        with self.present([queueing.QUICK]):
            self.work([queueing.QUICK], burst=burst)

    @contextmanager
    def present(self, queues: Sequence[str]) -> Iterator[threading.Event]:
        """Give signs of life for the queues until the block ends or is interrupted. Yields what then is set."""
        gc.set_threshold(*gc.get_threshold()[:2], COLLECTED)
        call_sessions(WORKER)
        owner, stop = get_this_worker(), threading.Event()
        signs = repeat(partial(announce, owner, queues), stop, every=SIGN_OF_LIFE_SECONDS, name="signs", at_once=True)
        try:
            self.stderr.write(f"Working {', '.join(queues)} as {owner}.")
            yield stop
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            signs.join(timeout=SIGN_OF_LIFE_SECONDS)
            with suppress(RedisError):  # its sign of life expires anyway
                queueing.retire_worker(owner, queues)

    def work(self, queues: list[str], *, burst: bool) -> None:
        """Work until stopped, or with `burst` until the queues are empty. Without `burst`, survive outages of Redis."""
        stop = Stop()
        while True:
            # Outside a job, `kill` must run the exit handlers too; RQ sets gentler handlers while it works.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            reason = "see above"
            try:
                work_with_redis(queues, stop, burst=burst)
            except RedisError as error:
                if burst:
                    raise
                reason = str(error)
            if burst or stop.is_requested:
                return
            self.stderr.write(f"This worker stopped with an error ({reason}) and restarts shortly.")
            time.sleep(AWAY_SECONDS)


def work_with_redis(queues: list[str], stop: Stop, *, burst: bool) -> None:
    """Work the queues until `stop` or an error of Redis. RQ raises some of these errors and ends silently at others."""
    worker = QueueWorker(
        [django_rq.get_queue(name) for name in queues],
        connection=django_rq.get_connection("default"),
        job_class=OwnJob,
        serializer=JSONSerializer,
    )
    worker.stop = stop
    turns.SERVED[:] = queues
    worker.work(burst=burst, logging_level="WARNING")


def announce(owner: str, queues: Sequence[str]) -> None:
    """Store this worker's sign of life, or the reason why it waits."""
    queueing.announce_worker(owner, queues, waits=explain_waiting())


def sweep_if_it_fits() -> None:
    if not explain_waiting():
        sweep()
