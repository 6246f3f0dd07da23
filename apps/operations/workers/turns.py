"""Turns: the choice of a worker's next batch, so that long work of one user does not block that of others."""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now

from apps.operations import process, queueing
from apps.operations.leasing import ACTIVE, filter_claimable
from apps.operations.models import Batch, Operation, Priority

SERVED: list[str] = []  # the queues of this process's worker
process.add(SERVED.clear)
REMEMBERED = timedelta(minutes=10)  # how long ended operations count as service of their user


def take_turn(batch_id: int, owner: str) -> int:
    """Return the batch that `owner` should do next, having received the job of `batch_id`.

    If it is another batch, the received job goes to the end of its queue. Candidates are operations with a claimable
    batch on that queue or the others that this worker serves. The highest priority comes first, then the user (who
    started them) with the fewest workers, then the one served longest ago. Among that user's operations the same order
    applies. Unserved ones count from when they were queued. Two workers may get the same batch: `claim` decides, and
    each waiting batch has a job.
    """
    batch = Batch.objects.select_related("operation").filter(pk=batch_id).first()
    chosen = _find_next_operation({batch.operation.queue, *SERVED}, owner) if batch else None
    if batch is None or chosen in (None, batch.operation_id):
        return batch_id
    with transaction.atomic():  # a locked batch could not be claimed
        free = filter_claimable(Batch.objects.filter(operation=chosen), owner).order_by("ordinal")
        first = free.select_related("operation").select_for_update(skip_locked=True, of=("self",)).first()
    if first is None:  # another worker was faster
        return batch_id
    queueing.forget_job(first.operation.queue, first)
    if filter_claimable(Batch.objects.filter(pk=batch_id)).exists():
        queueing.pass_on(batch.operation.queue, batch)
    return first.pk


def _find_next_operation(queues: Collection[str], owner: str) -> UUID | None:
    """Return the id of the operation whose turn it is; None without a claimable batch."""
    # Subqueries answered by indexes, the last in their order: joins and EXISTS read all batches of an operation.
    batches = Batch.objects.filter(operation=OuterRef("pk")).order_by()
    at_work = batches.filter(state=Batch.State.RUNNING, lease_until__gte=Now()).values("operation")
    served = batches.filter(started_at__isnull=False).order_by("-started_at").values("started_at")
    rows = list(
        Operation.objects.filter(Q(status__in=ACTIVE) | Q(finished_at__gte=Now() - REMEMBERED), queue__in=queues)
        .annotate(
            workers=Coalesce(Subquery(at_work.annotate(count=Count("pk")).values("count")), 0),
            started=Subquery(served[:1]),
            waits=Subquery(filter_claimable(batches, owner).order_by("ordinal").values("pk")[:1]),
        )
        .values_list("pk", "started_by", "workers", "started", "created_at", "waits", "priority")
    )
    workers_at: Counter[UUID | int] = Counter()
    times: defaultdict[UUID | int, list[datetime]] = defaultdict(list)
    queued: dict[UUID | int, datetime] = {}
    for pk, user, workers, started, created, *_ in rows:
        workers_at[user or pk] += workers
        times[user or pk] += [started] if started else []
        queued[user or pk] = min(created, queued.get(user or pk, created))
    turns = []
    for pk, user, workers, started, created, waits, priority in rows:
        user_key = user or pk
        if waits:
            turn = max(times[user_key], default=queued[user_key])
            rank = Priority.values.index(priority)
            turns.append((rank, workers_at[user_key], turn, workers, started or created, pk))
    return min(turns)[-1] if turns else None
