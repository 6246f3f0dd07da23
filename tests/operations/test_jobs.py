"""What a worker finds on its queues, what of that it runs, and that it stops where it is informed to."""

import os
import pickle
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import django_rq
import pytest
from django.utils.module_loading import import_string
from rq import Callback, Queue, SimpleWorker
from rq.serializers import DefaultSerializer

from apps.judging.settling.renewing import RENEW_STATE
from apps.operations import queueing
from apps.operations.handlers import HANDLERS
from apps.operations.management.commands.worker import Command, QueueWorker, Stop
from apps.operations.models import SUBJECTS, Operation
from apps.operations.workers.jobs import JOBS
from apps.operations.workers.pool import Pool
from apps.results.trying import ANSWER_TRIAL
from tests.faults.planting import POINTS
from tests.operations.adding import start_adding
from tests.waiting import HANG_SECONDS, until


class Touching:
    """Unpickled it makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path(self.path),)


@pytest.fixture
def queue(transactional_db: None) -> Queue:
    queue = django_rq.get_queue("default")
    queue.empty()
    return queue


def work() -> None:
    Command().serve(["default"], burst=True)


def test_worker_runs_no_unknown_functions(queue, tmp_path):
    job = queue.enqueue("os.mkdir", str(tmp_path / "made"), on_failure=Callback("os.getcwd"))
    assert job
    work()
    assert not (tmp_path / "made").exists()
    job.refresh()
    assert job.get_status() == "failed"
    assert "Refused the unknown job os.mkdir" in str(job.latest_result().exc_string)


def test_burst_works_batches_whose_jobs_were_lost(queue, handler, caplog):
    operation = start_adding({"number": 1})
    queue.empty()
    work()
    operation.refresh_from_db()
    assert operation.status == "completed"
    assert "Enqueued 1 batch on default, which had no job or took long." in caplog.messages


def test_pool_reports_that_it_ended_a_worker(transactional_db, settings):
    settings.BENCHBENCH_LEASE_SECONDS = 0
    released: list[str] = []

    def hang(burst: bool) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    pool = Pool(["default"], works=[hang], release=lambda pid, note, sentence: released.append(sentence))
    pool.start_worker()
    until(lambda: pool.reap_workers() or released)
    assert released == [
        "The worker's process did not respond during this batch, so its pool ended it; its log has the traceback."
    ]


def test_it_unpickles_nothing(queue, tmp_path):
    pickled = Queue("default", connection=queue.connection, serializer=DefaultSerializer)
    touching = Touching(str(tmp_path / "touched"))
    pickle.loads(pickle.dumps(touching))
    assert (tmp_path / "touched").exists(), "that is how one is hurt"
    (tmp_path / "touched").unlink()
    pickled.enqueue("apps.operations.working.work_batch", touching)
    work()
    assert not (tmp_path / "touched").exists()


def test_second_stop_signal_during_the_handler_does_not_block(monkeypatch):
    """A terminal signals the whole group, and the pool its worker: the second signal comes at any line."""
    monkeypatch.setattr(SimpleWorker, "request_stop", lambda *_: None)
    worker: Any = QueueWorker.__new__(QueueWorker)
    worker.stop = Stop()

    def again(*_: Any) -> None:
        sys.setprofile(None)
        worker.request_stop(signal.SIGTERM, None)
        sys.setprofile(again)

    def be_told() -> None:
        sys.setprofile(again)
        worker.request_stop(signal.SIGTERM, None)
        sys.setprofile(None)

    answer = threading.Thread(target=be_told, daemon=True)
    answer.start()
    answer.join(HANG_SECONDS)
    assert not answer.is_alive()
    assert worker.stop.is_requested


def test_every_kind_and_job_is_registered():
    assert set(HANDLERS) == set(SUBJECTS) == set(Operation.Kind)
    assert {queueing.JOB, RENEW_STATE, ANSWER_TRIAL} <= set(JOBS)
    for name, kind in JOBS.items():
        assert import_string(name) is kind.function


def test_every_fault_injection_point_exists_in_the_code():
    for stage, point in POINTS.items():
        owner = import_module(point.module)
        for piece in point.name.split("."):
            assert hasattr(owner, piece), f"{stage}: {point.module} has no {point.name}"
            owner = getattr(owner, piece)
