"""Sweeping: what a killed worker or a restarted Redis left behind is put right."""

import logging

from apps.operations import queueing
from apps.operations.ending import settle
from apps.operations.leasing import ACTIVE, claimable
from apps.operations.models import Operation
from apps.operations.workers.limits import break_off_lost
from benchbench.decimals import counted

log = logging.getLogger(__name__)


def sweep() -> int:
    """Enqueue every batch that could be worked on but has no job, fail those whose last attempt expired, end the
    transactions of those that lost their leases, and conclude operations whose worker died between the last batch and
    the end. Return how many batches were enqueued.

    Any process may call it at any time: each step is conditional or harmless when repeated, and waits for no lock.
    """
    break_off_lost()
    enqueued = 0
    for operation in Operation.objects.filter(status__in=ACTIVE):
        if settle(operation):
            continue
        waiting = list(claimable(operation.batches.all()))
        present = queueing.queued_job_ids(operation.queue) if waiting else set()
        missing = [batch for batch in waiting if queueing.job_id(batch) not in present]
        if missing:
            log.warning("%s: %s without a job, enqueued again.", operation, counted(len(missing), "batch"))
            for batch in missing:  # under another name: a worker may be at the job that was taken for lost
                queueing.pass_on(operation.queue, batch)
            enqueued += len(missing)
    return enqueued
