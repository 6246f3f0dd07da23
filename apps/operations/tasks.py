"""The one entry point of RQ."""

import time

from django.db import close_old_connections

from apps.operations.leasing import this_worker
from apps.operations.workers.turns import take_turn
from apps.operations.working import pass_on, perform_batch

PASS_ON_SECONDS = 1.0  # another worker shall find what this one passes on, before this one does again


def work_batch(batch_id: int) -> None:
    """Do a batch, this one or one whose turn it is. One that this worker may not take goes to the others."""
    close_old_connections()  # the database may have been restarted since the last batch, and RQ does not look
    try:
        batch_id = take_turn(batch_id, this_worker())
        if not perform_batch(batch_id, owner=this_worker()) and pass_on(batch_id, owner=this_worker()):
            time.sleep(PASS_ON_SECONDS)
    finally:
        close_old_connections()
