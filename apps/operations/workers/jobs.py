"""Jobs that workers run: functions that the rooms register in `AppConfig.ready`; and jobs that a thread performs."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import django_rq
from redis.exceptions import RedisError
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from apps.operations.queueing import QUICK
from benchbench.database.tables import explain_waiting


@dataclass(frozen=True, slots=True)
class JobKind:
    """A function that workers run, its queue, and what lists the argument and the time of each job that waits."""

    function: Callable[[Any], object]
    queue: str
    list_waiting: Callable[[], Iterable[tuple[object, datetime]]]


JOBS: dict[str, JobKind] = {}  # by dotted name, which Redis has


def register_job(
    function: Callable[[Any], object],
    *,
    queue: str = QUICK,
    list_waiting: Callable[[], Iterable[tuple[object, datetime]]] = lambda: (),
) -> None:
    """Let workers run `function`, with one argument. Call it in the `AppConfig.ready` of the function's room.

    Each sweep schedules the timed jobs that `list_waiting` returns: argument and time.
    """
    JOBS[name_function(function)] = JobKind(function, queue, list_waiting)


def name_function(function: Callable[..., object]) -> str:
    """Return the dotted name by which a job names its function."""
    return f"{function.__module__}.{function.__qualname__}"


class ForeignJobError(Exception):
    """A job in Redis is not one of BenchBench."""


class OwnJob(Job):
    """A job that calls only functions in `JOBS`. RQ's own would import and call any function named in Redis."""

    @property
    def func(self) -> Callable[..., Any]:
        if self.func_name not in JOBS or self.instance is not None:
            raise ForeignJobError(f"Refused the unknown job {self.func_name}. Does another application use this Redis?")
        return JOBS[self.func_name].function

    success_callback = failure_callback = stopped_callback = None  # our jobs have no callbacks


log = logging.getLogger(__name__)


def work_aside(queue_name: str) -> None:
    """Perform the jobs of a queue until it is empty. A job that fails is logged and removed: its row is still due."""
    queue = django_rq.get_queue(queue_name)
    while not explain_waiting():
        dequeued = Queue.dequeue_any(
            [queue], None, connection=queue.connection, job_class=OwnJob, serializer=JSONSerializer
        )
        if dequeued is None:
            return
        job, _ = dequeued
        try:
            job.func(*job.args)
        except RedisError:
            raise
        except Exception:
            log.exception("The job %s failed; the next sweep enqueues it again.", job.func_name)
        finally:
            job.delete()
