"""Jobs of the quick queue: searches for tried queries, and the deletion of what is kept no longer."""

from collections.abc import Callable
from typing import Any

from django.db import close_old_connections

from apps.operations.queueing import mark_started
from apps.results.retention.pruning import prune_for
from apps.results.trial_search import search, search_engine
from apps.results.trying import ANSWER_ENGINE_TRIAL, ANSWER_TRIAL, Answer, EngineTrial, Trial, answer


def answer_trial(key: str) -> None:
    """Answer the trial under a key of the cache, unless it expired. The job `ANSWER_TRIAL`."""
    _answer(ANSWER_TRIAL, key, lambda fields: search(Trial(**fields)))


def answer_engine_trial(key: str) -> None:
    """Answer the trial of an engine in the same way. The job `ANSWER_ENGINE_TRIAL`."""
    _answer(ANSWER_ENGINE_TRIAL, key, lambda fields: search_engine(EngineTrial(**fields)))


def _answer(job: str, key: str, search: Callable[[dict[str, Any]], Answer]) -> None:
    close_old_connections()  # the database may have restarted since the last job, and RQ does not check
    try:
        answer(key, search)
    finally:
        mark_started(job, key)
        close_old_connections()


def prune(_: str) -> None:
    """Delete what the policies of retention name, for at most a minute. This job runs every hour."""
    close_old_connections()
    prune_for(seconds=60)
