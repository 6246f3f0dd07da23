"""Jobs at a later time, by RQ's own scheduler: a thread of every worker runs it, and one at a time has its lock.

RQ would fork a process, which outlives a worker that is killed and keeps the lock. Rows of the database hold what is
due: the sweep schedules their jobs, and a job that runs too early, late or twice asks its row.
"""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import django_rq
from redis.exceptions import RedisError
from rq.scheduler import RQScheduler
from rq.serializers import JSONSerializer

from apps.operations.queueing import NOTICES, SCHEDULES
from apps.operations.workers.jobs import JOBS

log = logging.getLogger(__name__)
TIMED = [NOTICES, SCHEDULES]  # the queues of timed jobs
SECONDS = 2.0  # between two looks for due jobs


class TimedJob(NamedTuple):
    """A job `name` with its argument, due at a time."""

    name: str
    argument: str
    at: datetime

    @property
    def queue(self) -> str:
        return JOBS[self.name].queue

    @property
    def id(self) -> str:
        """Return the id in Redis, which is another for another time: RQ deletes a job by its id when it ends."""
        return f"{self.name.rpartition('.')[2]}-{self.argument}-{self.at.timestamp():.0f}"


def list_timed_jobs() -> list[TimedJob]:
    """Return every job that waits for its time."""
    return [TimedJob(name, str(argument), at) for name, kind in JOBS.items() for argument, at in kind.list_waiting()]


def schedule(jobs: Iterable[TimedJob]) -> None:
    """Hand the jobs to RQ's scheduler that Redis neither schedules nor has on their queues.

    A job at work is scheduled again: RQ would count one of a killed worker as started for ten minutes.
    """
    queues = {name: django_rq.get_queue(name) for name in TIMED}
    try:
        present = {
            job_id
            for queue in queues.values()
            for job_id in (*queue.get_job_ids(), *queue.scheduled_job_registry.get_job_ids())
        }
        for job in jobs:
            if job.id not in present:
                options = {"job_id": job.id, "result_ttl": 0, "failure_ttl": 86_400}
                queues[job.queue].enqueue_at(job.at, job.name, job.argument, **options)
    except RedisError:
        log.exception("Could not schedule jobs; the next sweep tries again.")


def make_scheduler() -> RQScheduler:
    connection = django_rq.get_connection("default")
    return RQScheduler(TIMED, connection, interval=int(SECONDS), logging_level="WARNING", serializer=JSONSerializer)


def enqueue_due(scheduler: RQScheduler) -> None:
    """Put due jobs on those of their queues whose lock this scheduler has. Takes the lock over from one that died."""
    if scheduler.acquire_locks():
        scheduler.enqueue_scheduled_jobs()
