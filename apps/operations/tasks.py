"""The one entry point of RQ."""

from django.db import close_old_connections

from apps.operations.leasing import new_owner
from apps.operations.working import perform_batch

_owner = ""


def work_batch(batch_id: int) -> None:
    """Do one batch, if it is still to be done."""
    global _owner
    _owner = _owner or new_owner()
    close_old_connections()  # the database may have been restarted since the last batch, and RQ does not look
    try:
        perform_batch(batch_id, owner=_owner)
    finally:
        close_old_connections()
