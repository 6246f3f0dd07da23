"""Jobs of the quick queue: searches for tried queries, and the deletion of what is kept no longer."""

from django.db import close_old_connections

from apps.operations import queueing
from apps.results.retention.pruning import prune_for
from apps.results.trying import answer


def answer_trial(key: str) -> None:
    """Answer the trial under a key of the cache, unless it expired. The job `queueing.ANSWER_TRIAL`."""
    close_old_connections()  # the database may have restarted since the last job, and RQ does not check
    try:
        answer(key)
    finally:
        queueing.mark_started(queueing.ANSWER_TRIAL, key)
        close_old_connections()


def prune(_: str) -> None:
    """Delete what the policies of retention name, for at most a minute. The job `queueing.PRUNE`, every hour."""
    close_old_connections()
    prune_for(seconds=60)
