"""Queues in Redis, their jobs (batches and quick jobs), and their workers.

Jobs carry only ids; the database holds the work.
"""

import logging
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import django_rq
from django.conf import settings
from django.db import transaction
from django.db.models import Case, Count, Exists, OuterRef, Q, Subquery, When
from django.db.models.functions import Now
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue as Jobs
from rq.job import Job

from apps.operations.models import Batch, Operation, Priority

log = logging.getLogger(__name__)
JOB = "apps.operations.working.work_batch"
QUICK = "quick"  # for jobs that take about a second; every worker serves it before its other queues
SCHEDULES = "schedules"  # for timed jobs: every worker does one of these and a batch in turns
NOTICES = "notices"  # for jobs that wait for receivers: a thread of every worker does them
WAITS_SECONDS = 60  # a quick job counts as waiting this long; a lost one is enqueued again afterwards
OVERDUE_SECONDS = 15
WORKER_TTL_SECONDS = 20
SERVES = "1"  # the value of a worker's sign of life, unless that is the reason why it waits


def connect() -> Redis:
    """Return the client of Redis that this process's threads and calls share: to connect takes longer than to ask."""
    return _connect(settings.RQ_QUEUES["default"]["URL"])


@cache
def _connect(url: str) -> Redis:
    return Redis.from_url(url)


def open_queue(name: str) -> Jobs:
    return django_rq.get_queue(name, connection=connect())


def name_job(batch: Batch) -> str:
    """Return the name of the job of a batch's next attempt, so that a second enqueueing replaces the first."""
    return f"batch-{batch.pk}-{batch.attempts}"


def enqueue(queue: str, batches: Iterable[Batch]) -> None:
    """Put batches on a queue once the transaction has committed. Enqueueing one twice is harmless: see `claim`.

    Nothing is lost if Redis is unreachable: the sweep enqueues batches without a job.
    """
    batch_list = list(batches)
    transaction.on_commit(lambda: _push(queue, batch_list))


def pass_on(queue: str, *batches: Batch) -> None:
    """Put batches at the end of a queue under new job names: RQ deletes jobs by name when a running one ends."""
    transaction.on_commit(lambda: _push(queue, list(batches), suffix=f"-{uuid.uuid4().hex[:8]}"))


def forget_job(queue: str, batch: Batch) -> None:
    """Remove the job of a batch from a queue. A job that a worker already has finds nothing to do, and ends."""
    waiting, name = open_queue(queue), name_job(batch)
    try:
        if waiting.remove(name):
            waiting.connection.delete(Job.key_for(name))
    except RedisError:
        log.exception("Could not take the job of %s from %r.", batch, queue)


def _push(queue_name: str, batches: list[Batch], *, suffix: str = "") -> None:
    queue = open_queue(queue_name)
    jobs = [
        queue.prepare_data(
            JOB,
            args=(batch.pk,),
            job_id=name_job(batch) + suffix,
            timeout=settings.BENCHBENCH_BATCH_TIMEOUT_SECONDS,
            result_ttl=0,
            failure_ttl=86_400,
            description=f"batch {batch.ordinal} of operation {batch.operation_id}",
        )
        for batch in batches
    ]
    try:
        queue.enqueue_many(jobs)
    except RedisError:
        log.exception("Could not enqueue %d batches on %r; the next sweep tries again.", len(jobs), queue_name)


def enqueue_once(name: str, argument: str) -> bool:
    """Enqueue a quick job unless it waits already. Return whether a worker is expected to run it soon.

    False if no worker is running, none took it for OVERDUE_SECONDS, or Redis is unreachable: then the caller does the
    work. The job may still run later, with nothing left to do.
    """
    waits = _build_key(name, argument)
    redis = connect()
    try:
        if not redis.set(waits, 1, nx=True, ex=WAITS_SECONDS):
            return not 0 <= redis.ttl(waits) < WAITS_SECONDS - OVERDUE_SECONDS
        if not find_workers(QUICK):
            redis.delete(waits)
            return False
        queue = open_queue(QUICK)
        queue.enqueue_many([queue.prepare_data(name, args=(argument,), result_ttl=0, failure_ttl=86_400)])
    except RedisError:
        log.exception("Could not enqueue %s.", name)
        return False
    return True


def is_behind_batches() -> bool:
    """Return whether a quick job waits for the end of a batch, as every worker has one. Raises RedisError."""
    leased = Batch.objects.filter(state=Batch.State.RUNNING, lease_until__gte=Now())
    workers = find_workers(QUICK)
    return bool(workers) and workers <= set(leased.values_list("lease_owner", flat=True))


def mark_started(name: str, argument: str) -> None:
    """Mark a quick job as started; later requests enqueue a new one."""
    connect().delete(_build_key(name, argument))


def _build_key(name: str, argument: str) -> str:
    return f"benchbench:waits:{name}:{argument}"


def list_job_ids(queue_name: str) -> set[str]:
    """Return the names of the jobs on a queue, in the form of `name_job`."""
    return {"-".join(name.split("-")[:3]) for name in open_queue(queue_name).get_job_ids()}


def announce_worker(owner: str, queues: Iterable[str], *, waits: str = "") -> None:
    """Store a worker's sign of life for these queues, for WORKER_TTL_SECONDS. `waits` is the reason if it waits.

    RQ's own sign of life outlives a killed worker.
    """
    redis = connect()
    for queue in queues:
        redis.set(f"benchbench:worker:{queue}:{owner}", waits or SERVES, ex=WORKER_TTL_SECONDS)


def retire_worker(owner: str, queues: Iterable[str]) -> None:
    connect().delete(*(f"benchbench:worker:{queue}:{owner}" for queue in queues))


def find_workers(queue: str) -> set[str]:
    """Return the workers with a sign of life that serve `queue`."""
    return {owner for owner, sign in _load_signs(queue).items() if sign == SERVES}


def find_waiting_workers(queue: str) -> dict[str, str]:
    """Return the workers with a sign of life that cannot serve `queue`, each with its reason."""
    return {owner: reason for owner, reason in _load_signs(queue).items() if reason != SERVES}


def _load_signs(queue: str) -> dict[str, str]:
    redis = connect()
    prefix = f"benchbench:worker:{queue}:"
    keys = [bytes(key) for key in redis.scan_iter(match=f"{prefix}*", count=1000)]
    values: list[Any] = redis.mget(keys) if keys else []
    signs = zip(keys, values, strict=True)  # None for a sign that expired meanwhile
    return {key.decode().removeprefix(prefix): value.decode() for key, value in signs if value is not None}


def count_ahead(operation: Operation) -> int | None:
    """Return the number of waiting operations served before this one; None once it has started or ended.

    Running operations do not count: they take turns with the waiting ones (`workers.turns`).
    """
    return count_each_ahead([operation])[operation]


def count_each_ahead(operations: Sequence[Operation]) -> dict[Operation, int | None]:
    """Return `count_ahead` of each operation, in one query."""
    rank = Case(*(When(priority=value, then=number) for number, value in enumerate(Priority.values)))
    earlier = (
        Operation.objects.alias(rank=rank)
        .filter(queue=OuterRef("queue"), status="pending")
        .filter(Q(rank__lt=OuterRef("rank")) | Q(rank=OuterRef("rank"), created_at__lt=OuterRef("created_at")))
        .order_by()
    )
    begun = Batch.objects.filter(operation=OuterRef("pk")).exclude(state=Batch.State.PENDING)
    waiting = Operation.objects.alias(rank=rank).filter(
        ~Exists(begun), pk__in=[operation.pk for operation in operations]
    )
    counts = waiting.annotate(ahead=Subquery(earlier.values("queue").annotate(n=Count("pk")).values("n")))
    ahead = {key: number or 0 for key, number in counts.values_list("pk", "ahead")}
    return {operation: ahead.get(operation.pk) if operation.is_active else None for operation in operations}


@dataclass(slots=True)
class Worker:
    """A worker that has a current sign of life or the lease of a batch."""

    name: str = ""
    queues: list[str] = field(default_factory=list)  # empty without a sign of life
    waits: str = ""  # the reason why it takes no batch
    batch: Batch | None = None  # with its operation

    @property
    def takes_batches(self) -> bool:
        return self.queues != [QUICK]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with its numbers of waiting jobs and of workers serving it."""

    name: str
    jobs: int
    workers: int


def list_workers() -> list[Worker]:
    """Return all workers, sorted by name. Raises RedisError."""
    workers_by_name: defaultdict[str, Worker] = defaultdict(Worker)
    for queue in settings.RQ_QUEUES:
        for name, sign in _load_signs(queue).items():
            workers_by_name[name].queues.append(queue)
            workers_by_name[name].waits = "" if sign == SERVES else sign
    leased = Batch.objects.filter(state=Batch.State.RUNNING, lease_until__gte=Now())
    for batch in leased.select_related("operation").order_by("started_at"):
        workers_by_name[batch.lease_owner].batch = batch
    for name, worker in workers_by_name.items():
        worker.name = name
    return [workers_by_name[name] for name in sorted(workers_by_name)]


def list_queues(workers: list[Worker]) -> list[Queue]:
    """Return all queues of the site, as served by these workers. Raises RedisError."""
    serving = Counter(queue for worker in workers if not worker.waits for queue in worker.queues)
    return [Queue(name, len(open_queue(name)), serving[name]) for name in settings.RQ_QUEUES]
