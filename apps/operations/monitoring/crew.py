"""Workers and queues as they are now: who lives, what they are at, what waits."""

from collections import defaultdict
from dataclasses import dataclass, field

import django_rq
from django.conf import settings
from django.db.models.functions import Now

from apps.operations.models import Batch
from apps.operations.queueing import waiting_workers, workers_on


@dataclass(slots=True)
class Worker:
    """A worker that gave a sign of life within the last seconds, or still holds the lease of a batch."""

    name: str
    queues: list[str] = field(default_factory=list)  # none of one that gives no sign
    waits: str = ""  # the sentence why it takes nothing
    batch: Batch | None = None  # with its operation


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue, with the jobs that wait in it and the number of workers that serve it."""

    name: str
    jobs: int
    workers: int


def crew() -> list[Worker]:
    """Return the workers by name. Raises RedisError."""
    known: dict[str, Worker] = {}

    def worker(name: str) -> Worker:
        return known.setdefault(name, Worker(name))

    for queue in settings.RQ_QUEUES:
        for name in workers_on(queue):
            worker(name).queues.append(queue)
        for name, sentence in waiting_workers(queue).items():
            worker(name).queues.append(queue)
            worker(name).waits = sentence
    leased = Batch.objects.filter(state=Batch.State.RUNNING, lease_until__gte=Now())
    for batch in leased.select_related("operation").order_by("started_at"):
        worker(batch.lease_owner).batch = batch
    return [known[name] for name in sorted(known)]


def queues(workers: list[Worker]) -> list[Queue]:
    """Return every queue of the site, served by these workers. Raises RedisError."""
    serving: defaultdict[str, int] = defaultdict(int)
    for worker in workers:
        for queue in worker.queues if not worker.waits else ():
            serving[queue] += 1
    return [Queue(name, len(django_rq.get_queue(name)), serving[name]) for name in settings.RQ_QUEUES]
