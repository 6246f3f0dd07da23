"""The pool: RQ's, which starts a worker again that ended, and here one that hangs too.

The worker is a child, so that it can be killed while it hangs, and forked, since this process has loaded no model. What
it was at then goes on at once, without waiting for a lease to run out.
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
from typing import Any

import django_rq
from django.conf import settings
from django.db import connections
from rq.worker_pool import ForkProcess, WorkerData, WorkerPool

from apps.operations.workers.watchdog import Board, Note, show_on

log = logging.getLogger(__name__)
BEAT_SECONDS = 1.0
TRACE_SECONDS = 0.5  # for a process to write where it hangs


class Pool(WorkerPool):
    """One worker, replaced when it ends, is overdue, or shows no sign of life for twice the time of a lease.

    `serve(burst)` is what the worker does. `release(pid, note, sentence)` is told of each that did not end well.
    """

    def __init__(
        self, queues: Sequence[str], *, serve: Callable[[bool], None], release: Callable[[int, Note, str], None]
    ) -> None:
        super().__init__(queues, django_rq.get_connection("default"), num_workers=1)
        self._serve, self._release = serve, release
        self._boards: dict[str, Board] = {}
        self._killed = False  # the last one ended before it was done
        self._seen: dict[str, tuple[int, int]] = {}  # by worker: its beats, and for how many looks they stay the same

    def get_worker_process(self, name: str, burst: bool, *_: Any, **__: Any) -> BaseProcess:
        board = self._boards[name] = Board()
        connections.close_all()  # none crosses a fork
        return ForkProcess(target=_work, args=(self._serve, burst, board, os.getpid()), name=name)

    def reap_workers(self) -> None:
        for data in list(self.worker_dict.values()):
            if self._hangs(data):
                _kill(data)
        super().reap_workers()

    def check_workers(self, respawn: bool = True) -> None:
        super().check_workers(respawn=respawn)
        if not respawn and not self.worker_dict and self._killed:  # burst: what it was at is still to be done
            self._killed = False
            self.start_worker(burst=True)

    def handle_dead_worker(self, worker_data: WorkerData) -> None:
        super().handle_dead_worker(worker_data)
        board, code = self._boards.pop(worker_data.name), worker_data.process.exitcode
        self._seen.pop(worker_data.name, None)
        if not code:
            return
        self._killed = True
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
        overdue = board.read()[1] < time.monotonic()
        note = board.note() if overdue else {}
        sentence = note.get("sentence") or (
            f"The worker's process ended by {how} amid this batch; it may have run out of memory. Look at its log."
        )
        log.error("The worker %d is replaced. %s", worker_data.pid, sentence)
        try:
            self._release(worker_data.pid, note, sentence)
        except Exception:
            log.exception("Could not give back what the worker %d was at; its lease runs out.", worker_data.pid)

    def _hangs(self, data: WorkerData) -> bool:
        beats, overdue = self._boards[data.name].read()
        before, looks = self._seen.get(data.name, (0, 0))
        self._seen[data.name] = beats, looks + 1 if beats == before else 0
        # Looks, not seconds: where the whole machine stood still, the worker did not.
        return overdue < time.monotonic() or looks > 2 * settings.BENCHBENCH_LEASE_SECONDS


def _kill(data: WorkerData) -> None:
    log.error("The worker %d hangs; where, is written on stderr.", data.pid)
    try:
        os.kill(data.pid, signal.SIGUSR1)
        data.process.join(TRACE_SECONDS)
        os.kill(data.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    data.process.join()


def _work(serve: Callable[[bool], None], burst: bool, board: Board, pool: int) -> None:
    """Be the worker."""
    # Outside a job both end it at once, RQ's own gentler handlers are for jobs; those of the pool are not the child's.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    show_on(board)
    threading.Thread(target=_beat, args=(board, pool), name="beat", daemon=True).start()
    serve(burst)


def _beat(board: Board, pool: int) -> None:
    """Show that this process lives, and end it where its pool does not."""
    while os.getppid() == pool:
        board.beat()
        time.sleep(BEAT_SECONDS)
    os._exit(1)
