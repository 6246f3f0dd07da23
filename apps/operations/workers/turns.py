"""Turns: which waiting batch a worker takes next, so that long work of one user keeps nobody else's waiting."""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q
from django.db.models.functions import Now

from apps.operations import queueing
from apps.operations.leasing import ACTIVE, claimable
from apps.operations.models import Batch, Operation

SERVED: list[str] = []  # the queues of the worker that this process is
REMEMBERED = timedelta(minutes=10)  # that a user was served, though the operation has ended since


def take_turn(batch_id: int, owner: str) -> int:
    """Return the batch that `owner` takes with the job of `batch_id`, whose own job goes to the end of the queue.

    Of the operations with a batch for `owner` on that queue, and on the others that this worker serves: those of the
    user (who started them) whom the fewest workers serve, of several users the one who was served longest ago; of that
    user's the one that the fewest serve, then the one that was served longest ago. What never was counts from when it
    was queued. Two workers may be told the same: `claim` decides, and nothing is lost, as each batch that waits has a
    job.
    """
    asked = Batch.objects.select_related("operation").filter(pk=batch_id).first()
    chosen = _next_operation({asked.operation.queue, *SERVED}, owner) if asked else None
    if asked is None or chosen in (None, asked.operation_id):
        return batch_id
    with transaction.atomic():  # what somebody has locked just now could not be claimed
        free = claimable(Batch.objects.filter(operation=chosen), owner).order_by("ordinal")
        first = free.select_related("operation").select_for_update(skip_locked=True, of=("self",)).first()
    if first is None:  # somebody was faster
        return batch_id
    queueing.forget_job(first.operation.queue, first)
    if claimable(Batch.objects.filter(pk=batch_id)).exists():
        queueing.pass_on(asked.operation.queue, asked)
    return first.pk


def _next_operation(queues: Collection[str], owner: str) -> Any:
    """Return the id of the operation whose turn it is; None where none has a batch that waits."""
    at_work = Q(batches__state=Batch.State.RUNNING, batches__lease_until__gte=Now())
    rows = list(
        Operation.objects.filter(Q(status__in=ACTIVE) | Q(finished_at__gte=Now() - REMEMBERED), queue__in=queues)
        .annotate(
            workers=Count("batches", filter=at_work),
            started=Max("batches__started_at"),
            waits=Exists(claimable(Batch.objects.filter(operation=OuterRef("pk")), owner)),
        )
        .values_list("pk", "started_by", "workers", "started", "created_at", "waits")
    )
    workers_at: Counter[Any] = Counter()
    times: defaultdict[Any, list[datetime]] = defaultdict(list)
    queued: dict[Any, datetime] = {}
    for pk, user, workers, started, created, _ in rows:
        workers_at[user or pk] += workers
        times[user or pk] += [started] if started else []
        queued[user or pk] = min(created, queued.get(user or pk, created))
    turns = []
    for pk, user, workers, started, created, waits in rows:
        whose = user or pk
        if waits:
            turn = max(times[whose], default=queued[whose])
            turns.append((workers_at[whose], turn, workers, started or created, pk))
    return min(turns)[-1] if turns else None
