"""Stragglers: batches that take far longer than the others of their operation, which an idle worker does too."""

import logging
from datetime import timedelta

from django.conf import settings
from django.db.models import DurationField, ExpressionWrapper, F, Max, OuterRef, QuerySet, Subquery
from django.db.models.functions import Greatest, Now

from apps.operations.leasing import select_active
from apps.operations.models import MAY_RUN_TWICE, Batch
from apps.operations.workers.limits import limited_transaction

log = logging.getLogger(__name__)
LEAST_SECONDS = 10.0  # a batch that takes less is never done twice


def filter_stragglers(batches: QuerySet[Batch], owner: str | None = None) -> QuerySet[Batch]:
    """Return the batches that take far longer than the longest finished one of their operation, and have no backup.

    Only batches that may run twice and whose worker waits for nothing. `owner` is the worker that would do them too.
    """
    if not settings.BENCHBENCH_STRAGGLER_FACTOR:
        return batches.none()
    finished = Batch.objects.filter(operation=OuterRef("operation"), state=Batch.State.DONE).order_by()
    longest = finished.values("operation").annotate(longest=Max(F("finished_at") - F("started_at"))).values("longest")
    allowed = ExpressionWrapper(F("longest") * settings.BENCHBENCH_STRAGGLER_FACTOR, output_field=DurationField())
    return batches.annotate(longest=Subquery(longest, output_field=DurationField())).filter(
        **{f"payload__{MAY_RUN_TWICE}": True},
        state=Batch.State.RUNNING,
        lease_until__gte=Now(),
        backup_owner="",
        waits_for="",
        longest__isnull=False,
        started_at__lt=Now() - Greatest(allowed, timedelta(seconds=LEAST_SECONDS)),
        operation_id__in=select_active(owner),
    )


def claim_backup(batch_id: int, owner: str) -> Batch | None:
    """Claim a straggler for doing it too, without taking it from its worker: the first to commit wins.

    Returns the batch with `owner` as its owner, or None unless it is a straggler. The worker that has the lease renews,
    reports, fails and releases the batch; a backup only commits it. A new attempt ends the backup.
    """
    with limited_transaction():
        late = filter_stragglers(Batch.objects.filter(pk=batch_id), owner).exclude(lease_owner=owner)
        ids = list(late.select_for_update(skip_locked=True, of=("self",)).order_by().values_list("pk", flat=True))
        if not Batch.objects.filter(pk__in=ids).update(backup_owner=owner):
            return None
    batch = Batch.objects.select_related("operation").annotate(now=Now()).get(pk=batch_id)
    log.info("%s takes long at %s: it is done here too.", batch, batch.lease_owner)
    batch.lease_owner, batch.started_at = owner, batch.now
    return batch
