"""Sweeping: what a killed worker or a restarted Redis left behind is put right."""

import logging

from apps.operations import queueing
from apps.operations.ending import settle
from apps.operations.handlers import HANDLERS, handler_of
from apps.operations.leasing import ACTIVE, claimable
from apps.operations.models import Batch, Operation
from apps.operations.workers.limits import break_off_lost
from benchbench.database.failures import was_ended
from benchbench.decimals import counted

log = logging.getLogger(__name__)


def sweep() -> int:
    """Enqueue every batch that could be worked on but has no job, fail those whose last attempt expired, end the
    transactions of those that lost their leases, conclude operations whose worker died between the last batch and the
    end, and have handlers tidy up. Return how many batches were enqueued.

    Any process may call it at any time: each step is conditional or harmless when repeated, and waits for no lock.
    """
    break_off_lost()
    waiting: dict[str, list[Batch]] = {}
    for operation in Operation.objects.filter(status__in=ACTIVE):
        try:
            if not settle(operation):
                waiting.setdefault(operation.queue, []).extend(claimable(operation.batches.all()))
        except Exception as error:
            if was_ended(error):
                raise
            log.exception("Could not see to %s, the next sweep will; going on with the others.", operation)
    enqueued = 0
    for queue, batches in waiting.items():
        present = queueing.queued_job_ids(queue) if batches else set()
        if missing := [batch for batch in batches if queueing.job_id(batch) not in present]:
            log.warning("On %s %s without a job, enqueued again.", queue, counted(len(missing), "batch"))
            queueing.pass_on(queue, *missing)  # under other names: a worker may be at a job that was taken for lost
            enqueued += len(missing)
    for kind in HANDLERS:
        handler_of(kind).tidy()
    return enqueued
