"""The one entry point of RQ."""

from apps.operations.leasing import new_owner
from apps.operations.working import perform_batch

_owner = ""


def work_batch(batch_id: int) -> None:
    """Do one batch, if it is still to be done."""
    global _owner
    _owner = _owner or new_owner()
    perform_batch(batch_id, owner=_owner)
