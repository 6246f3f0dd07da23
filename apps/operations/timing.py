"""Quick jobs at a later time, by RQ's own scheduler: a thread of every worker runs it, and one at a time has its lock.

RQ would fork a process, which outlives a worker that is killed and keeps the lock. Rows of the database hold what is
due: the sweep schedules jobs that Redis lost, and a job that runs too early, late or twice asks the row.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import django_rq
from redis.exceptions import RedisError
from rq.scheduler import RQScheduler
from rq.serializers import JSONSerializer

from apps.operations.queueing import QUICK

log = logging.getLogger(__name__)
SECONDS = 2.0  # between two looks for due jobs


@dataclass(frozen=True, slots=True)
class TimedJob:
    """A quick job `name` with its argument, due at a time."""

    name: str
    argument: str
    at: datetime

    @property
    def id(self) -> str:
        """Return the id in Redis, which is another for another time: RQ deletes a job by its id when it ends."""
        return f"{self.name.rpartition('.')[2]}-{self.argument}-{self.at.timestamp():.0f}"


def schedule(*jobs: TimedJob) -> None:
    """Hand jobs to RQ's scheduler; twice is harmless. If Redis is unreachable, the next sweep does it."""
    queue = django_rq.get_queue(QUICK)
    try:
        for job in jobs:
            queue.enqueue_at(job.at, job.name, job.argument, job_id=job.id, result_ttl=0, failure_ttl=86_400)
    except RedisError:
        log.exception("Could not schedule %d jobs; the next sweep tries again.", len(jobs))


def schedule_lost(jobs: Iterable[TimedJob]) -> None:
    """Schedule the jobs that Redis neither schedules nor has on the queue.

    A job at work is scheduled again: RQ would count one of a killed worker as started for ten minutes.
    """
    job_list, queue = list(jobs), django_rq.get_queue(QUICK)
    if not job_list:
        return
    try:
        present = {*queue.get_job_ids(), *queue.scheduled_job_registry.get_job_ids()}
    except RedisError:
        log.exception("Could not look for scheduled jobs; the next sweep tries again.")
    else:
        schedule(*(job for job in job_list if job.id not in present))


def make_scheduler() -> RQScheduler:
    connection = django_rq.get_connection("default")
    return RQScheduler([QUICK], connection, interval=int(SECONDS), logging_level="WARNING", serializer=JSONSerializer)


def enqueue_due(scheduler: RQScheduler) -> None:
    """Put due jobs on their queue if this scheduler has the lock. Takes the lock over from one that died."""
    if scheduler.acquire_locks():
        scheduler.enqueue_scheduled_jobs()
