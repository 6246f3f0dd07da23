"""Put right what a killed worker or a restarted Redis left behind."""

import logging

from django.conf import settings
from django.db.models.functions import Now

from apps.operations import queueing
from apps.operations.launching import end_operation
from apps.operations.leasing import ACTIVE, claimable
from apps.operations.models import Batch, Operation, Status
from apps.operations.working import conclude

log = logging.getLogger(__name__)


def sweep() -> int:
    """Enqueue every batch that could be worked on but has no job, fail those whose last attempt expired, and
    conclude operations whose worker died between the last batch and the end. Return how many batches were enqueued.

    Any process may call it at any time: each step is conditional or harmless when repeated.
    """
    enqueued = 0
    for operation in Operation.objects.filter(status__in=ACTIVE):
        if _fail_exhausted(operation) or conclude(operation):
            continue
        waiting = list(claimable(operation.batches.all()))
        present = queueing.queued_job_ids(operation.queue) if waiting else set()
        missing = [batch for batch in waiting if queueing.job_id(batch) not in present]
        if missing:
            log.warning("%s: %d batches had no job; enqueued again.", operation, len(missing))
            queueing.enqueue(operation.queue, missing)
            enqueued += len(missing)
    return enqueued


def _fail_exhausted(operation: Operation) -> bool:
    """Fail an operation one of whose batches lost its worker on the last attempt."""
    lost = operation.batches.filter(
        state=Batch.State.RUNNING, lease_until__lt=Now(), attempts__gte=settings.BENCHBENCH_MAX_ATTEMPTS
    )
    error = (
        f"A worker stopped without a word {settings.BENCHBENCH_MAX_ATTEMPTS} times on the same batch; it may have run "
        "out of memory. Look at the worker's log, then retry."
    )
    if not lost.update(state=Batch.State.FAILED, error=error, lease_until=None, finished_at=Now()):
        return False
    return end_operation(operation, Status.FAILED, error=error)
