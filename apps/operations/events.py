"""Hints that an operation has changed. A watcher that receives one reads the state from the database."""

import logging
import uuid

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from apps.operations.queueing import connect

log = logging.getLogger(__name__)
GROUP = "operations"
HINT = "operation.moved"


def group_of(operation_id: uuid.UUID | str) -> str:
    return f"operation.{operation_id}"


def publish(operation_id: uuid.UUID, *, always: bool = False) -> None:
    """Send watchers a hint, at most one per interval and operation unless `always`, as for an end.

    A lost hint delays a watcher by at most five seconds, its polling interval.
    """
    try:
        if not always and not _is_first_in_interval(operation_id):
            return
        async_to_sync(_send)({"type": HINT, "operation": str(operation_id)})
    except Exception:
        # A failure to notify must not stop the work.
        log.warning("Could not publish progress of operation %s.", operation_id, exc_info=True)


async def _send(hint: dict[str, str]) -> None:
    """Send to both groups from one event loop: each loop opens a connection to Redis, which costs more than sending."""
    layer = get_channel_layer()
    for group in (group_of(hint["operation"]), GROUP):
        await layer.group_send(group, hint)


def _is_first_in_interval(operation_id: uuid.UUID) -> bool:
    interval = settings.BENCHBENCH_EVENT_INTERVAL_MS
    redis = connect()
    return not interval or bool(redis.set(f"benchbench:event:{operation_id}", 1, px=interval, nx=True))
