"""Jobs of the quick queue: searches for tried queries, and the deletion of what is kept no longer."""

from django.db import close_old_connections

from apps.operations.queueing import mark_started
from apps.results.retention.pruning import prune_for
from apps.results.trying import ANSWER_TRIAL, answer


def answer_trial(key: str) -> None:
    """Answer the trial under a key of the cache, unless it expired. The job `ANSWER_TRIAL`."""
    close_old_connections()  # the database may have restarted since the last job, and RQ does not check
    try:
        answer(key)
    finally:
        mark_started(ANSWER_TRIAL, key)
        close_old_connections()


def prune(_: str) -> None:
    """Delete what the policies of retention name, for at most a minute. This job runs every hour."""
    close_old_connections()
    prune_for(seconds=60)
