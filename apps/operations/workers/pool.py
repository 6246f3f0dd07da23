"""The pool: RQ's worker pool, which replaces workers that ended, extended to replace those that hang.

Workers are children, so that they can be killed while they hang. They are forked, since this process has loaded no
model. The batch of a killed one is released at once, without waiting for the lease to expire.
"""

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess

import django_rq
from django.conf import settings
from django.db import connections
from rq.worker_pool import ForkProcess, WorkerData, WorkerPool

from apps.operations.workers.watchdog import Board, Note, show_on

log = logging.getLogger(__name__)
BEAT_SECONDS = 1.0
TRACE_SECONDS = 0.5  # for a process to write its stack
Work = Callable[[bool], None]


class Pool(WorkerPool):
    """A pool of workers, each replaced when it ends, is overdue, or gives no sign of life for twice the lease time.

    Each of `works`, called with `burst`, is the work of one. `release(pid, note, sentence)` is called for each worker
    that failed.
    """

    def __init__(
        self, queues: Sequence[str], *, works: Sequence[Work], release: Callable[[int, Note, str], None]
    ) -> None:
        super().__init__(queues, django_rq.get_connection("default"), num_workers=len(works))
        self._works, self._release = works, release
        self._numbers: dict[str, int] = {}  # by worker: that of its work
        self._boards: dict[str, Board] = {}
        self._killed = False  # the last worker failed
        self._hung: set[str] = set()  # the workers that this pool ended
        self._seen: dict[str, tuple[int, int]] = {}  # by worker: its beats, and the number of checks without a new one

    def get_worker_process(self, name: str, burst: bool, *_: object, **__: object) -> BaseProcess:
        board = self._boards[name] = Board()
        number = self._numbers[name] = min({*range(len(self._works))} - {*self._numbers.values()})
        for connection in connections.all(initialized_only=True):  # none must be shared across a fork
            connection.close()  # which only gives it back to its pool
            connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL
        return ForkProcess(target=_work, args=(self._works[number], burst, board, os.getpid()), name=name)

    def reap_workers(self) -> None:
        for data in list(self.worker_dict.values()):
            if self._hangs(data):
                self._hung.add(data.name)
                _kill(data)
        super().reap_workers()

    def check_workers(self, respawn: bool = True) -> None:
        super().check_workers(respawn=respawn)
        if not respawn and not self.worker_dict and self._killed:  # burst: the failed worker's batch remains
            self._killed = False
            self.start_worker(burst=True)

    def handle_dead_worker(self, worker_data: WorkerData) -> None:
        super().handle_dead_worker(worker_data)
        board, code = self._boards.pop(worker_data.name), worker_data.process.exitcode
        self._seen.pop(worker_data.name, None)
        self._numbers.pop(worker_data.name)
        if not code:
            return
        self._killed = True
        cause = f"ended with signal {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        ending = f"{cause} during this batch; it may have run out of memory. Check its log."
        if worker_data.name in self._hung:
            ending = "did not respond during this batch, so its pool ended it; its log has the traceback."
        overdue = board.read()[1] < time.monotonic()
        note = board.note() if overdue else {}
        sentence = note.get("sentence") or f"The worker's process {ending}"
        log.error("The worker %d is replaced. %s", worker_data.pid, sentence)
        try:
            self._release(worker_data.pid, note, sentence)
        except Exception:
            log.exception("Could not give back the batch of the worker %d; its lease will expire.", worker_data.pid)

    def _hangs(self, data: WorkerData) -> bool:
        beats, overdue = self._boards[data.name].read()
        before, looks = self._seen.get(data.name, (0, 0))
        self._seen[data.name] = beats, looks + 1 if beats == before else 0
        # Count checks, not seconds: if the whole machine was suspended, the worker did not hang.
        return overdue < time.monotonic() or looks > 2 * settings.BENCHBENCH_LEASE_SECONDS


def _kill(data: WorkerData) -> None:
    log.error("The worker %d hangs; its traceback is on stderr.", data.pid)
    try:
        os.kill(data.pid, signal.SIGUSR1)
        data.process.join(TRACE_SECONDS)
        os.kill(data.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    data.process.join()


def _work(work: Work, burst: bool, board: Board, pool: int) -> None:
    """Run the worker, in the child process."""
    # Outside a job both signals end the worker at once; RQ sets gentler handlers for jobs. Replace those of the pool.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    show_on(board)
    threading.Thread(target=_beat, args=(board, pool), name="beat", daemon=True).start()
    work(burst)


def _beat(board: Board, pool: int) -> None:
    """Write signs of life, and end this process if its pool has ended."""
    while os.getppid() == pool:
        board.beat()
        time.sleep(BEAT_SECONDS)
    os._exit(1)
