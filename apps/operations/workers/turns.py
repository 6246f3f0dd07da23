"""Turns: which waiting batch a worker takes next, so that long work of one user keeps nobody else's waiting."""

from collections import Counter
from typing import Any

from django.db.models import Count, Exists, Max, OuterRef, Q
from django.db.models.functions import Now

from apps.operations import queueing
from apps.operations.leasing import ACTIVE, claimable
from apps.operations.models import Batch, Operation


def take_turn(batch_id: int, owner: str) -> int:
    """Return the batch that `owner` takes with the job of `batch_id`, whose own job goes to the end of the queue.

    Of the operations on that queue with a batch for `owner`: one of a user (who started it) whom the fewest workers
    serve, then one that the fewest serve, then the one that was served longest ago, and the oldest. Two workers may be
    told the same: `claim` decides, and nothing is lost, as each batch that waits has a job.
    """
    asked = Batch.objects.select_related("operation").filter(pk=batch_id).first()
    chosen = _next_operation(asked.operation.queue, owner) if asked else None
    if asked is None or chosen in (None, asked.operation_id):
        return batch_id
    first = claimable(Batch.objects.filter(operation=chosen), owner).order_by("ordinal").first()
    if first is None:  # somebody was faster
        return batch_id
    queueing.forget_job(asked.operation.queue, first)
    if claimable(Batch.objects.filter(pk=batch_id)).exists():
        queueing.pass_on(asked.operation.queue, asked)
    return first.pk


def _next_operation(queue: str, owner: str) -> Any:
    """Return the id of the operation whose turn it is; None where none has a batch that waits."""
    at_work = Q(batches__state=Batch.State.RUNNING, batches__lease_until__gte=Now())
    rows = (
        Operation.objects.filter(queue=queue, status__in=ACTIVE)
        .annotate(
            workers=Count("batches", filter=at_work),
            served=Max("batches__started_at"),
            waits=Exists(claimable(Batch.objects.filter(operation=OuterRef("pk")), owner)),
        )
        .order_by("created_at")
        .values_list("pk", "started_by", "workers", "served", "waits")
    )
    of_user: Counter[Any] = Counter()
    for pk, user, workers, _, _ in rows:
        of_user[user or pk] += workers
    turns = [
        (of_user[user or pk], workers, served is not None, served, pk)
        for pk, user, workers, served, waits in rows
        if waits
    ]
    return min(turns, key=lambda turn: (*turn[:3], turn[3] or 0))[-1] if turns else None
