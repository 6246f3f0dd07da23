"""The order of a worker's queues: timed jobs and batches in turns, and notices aside in a thread."""

import threading
from typing import Any

import django_rq
import pytest
from django.utils import timezone
from rq.serializers import JSONSerializer

from apps.operations import queueing
from apps.operations.management.commands import worker as command
from apps.operations.timing import TimedJob, schedule
from apps.operations.workers.jobs import JOBS, JobKind, OwnJob, name_function, work_aside
from apps.results.tasks import prune
from apps.verdicts.schedules.notifying import send
from apps.verdicts.schedules.repeats import end_repeat
from apps.verdicts.schedules.starting import start_due

START = (name_function(start_due), "00000000-0000-0000-0000-000000000000")  # of no schedule
NOTICE = "00000000-0000-0000-0000-00000000000{}"


@pytest.fixture
def queues(db: None) -> Any:
    names = [queueing.QUICK, queueing.SCHEDULES, queueing.NOTICES, "gpu", "default"]
    hits = {name: django_rq.get_queue(name) for name in names}
    for queue in hits.values():
        queue.empty()
    yield hits
    for queue in hits.values():
        queue.empty()


class RecordingWorker(command.QueueWorker):
    """A worker that notes the queues of its jobs instead of working."""

    def execute_job(self, job: Any, queue: Any) -> None:
        self.served.append(queue.name)
        if len(self.served) == 3:
            queueing_job(django_rq.get_queue(queueing.QUICK), "late")


def queueing_job(queue: Any, *ids: str) -> None:
    for job_id in ids:
        queue.enqueue_many([queue.prepare_data(*START[:1], args=START[1:], job_id=job_id)])


def test_many_timed_jobs_and_batches_take_turns(queues):
    queueing_job(queues[queueing.SCHEDULES], *(f"start-{number}" for number in range(6)))
    queueing_job(queues["default"], "batch-1", "batch-2", "batch-3")
    queueing_job(queues["gpu"], "batch-4")
    names = [queueing.QUICK, queueing.SCHEDULES, "gpu", "default"]
    worker = RecordingWorker(
        [queues[name] for name in names],
        connection=django_rq.get_connection("default"),
        job_class=OwnJob,
        serializer=JSONSerializer,
    )
    worker.stop, worker.served = command.Stop(), []
    worker.work(burst=True, logging_level="WARNING")
    timed, batch = queueing.SCHEDULES, "default"
    assert worker.served == [timed, "gpu", timed, queueing.QUICK, batch, timed, batch, timed, batch, timed, timed]


def test_timed_jobs_wait_on_queues_of_their_own(queues):
    jobs = [TimedJob(name_function(one), "1", timezone.now()) for one in (start_due, end_repeat, prune, send)]
    schedule(jobs)
    waiting = {name: queue.scheduled_job_registry.get_job_ids() for name, queue in queues.items()}
    for queue in queues.values():
        for job_id in queue.scheduled_job_registry.get_job_ids():
            queue.scheduled_job_registry.remove(job_id)
    assert sorted(waiting[queueing.SCHEDULES]) == sorted(job.id for job in jobs[:3])
    assert waiting[queueing.NOTICES] == [jobs[3].id]
    assert waiting[queueing.QUICK] == []


def test_jobs_aside_are_done_in_order_though_one_fails(queues, monkeypatch):
    finished = []

    def send_one(notice_id: str) -> None:
        finished.append((notice_id[-1], threading.current_thread().name))
        if len(finished) == 1:
            raise ValueError("a mistake")

    name = name_function(send_one)
    monkeypatch.setitem(JOBS, name, JobKind(send_one, queueing.NOTICES, list))
    queue = queues[queueing.NOTICES]
    queue.enqueue_many([queue.prepare_data(name, args=(NOTICE.format(number),)) for number in range(3)])
    work_aside(queueing.NOTICES)
    assert [number for number, _ in finished] == ["0", "1", "2"]
    assert len(queue) == 0
    assert not list(queue.connection.scan_iter("rq:job:*"))
