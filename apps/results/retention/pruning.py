"""Deleting what the policies of retention name: a few rows in a transaction, each with a line in the log."""

import logging
import time
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.accounts.bin import empty
from apps.accounts.models import Deletion
from apps.operations.models import Operation
from apps.operations.workers.limits import HeldError, limited_transaction
from apps.records.models import Benchmark, ListSource, PairList, Run, StageList
from apps.results.retention.policies import POLICIES, Policy
from apps.results.retention.sizes import Sizes, count_due_bytes
from apps.retrieval.deleting import delete_index
from apps.retrieval.models import Index
from benchbench.database.failures import DeletedError
from benchbench.database.ordered import lock_in_order
from benchbench.deleting import delete_rows
from benchbench.errors import ConflictError

log = logging.getLogger(__name__)
RETENTION = ("RANKINGS", "INDEXES", "CACHES", "OPERATIONS")  # in the names of settings
AT_ONCE = {Deletion: 1, Operation: 20, Benchmark: 1, Index: 1}  # rows in a transaction
MAX_ROWS = 5000  # small rows in a transaction
SOURCES = 4  # stages whose lists go in a transaction
LOCK_SECONDS = 1.0


def list_due(sizes: Sizes) -> list[tuple[Policy, QuerySet[Model], int, int]]:
    """Return each policy with the rows that it would delete now, their number and their estimated bytes."""
    due = [(policy, rows, rows.count()) for policy in POLICIES for rows in [policy.find_due()]]
    return [(policy, rows, count, count_due_bytes(rows, sizes) if count else 0) for policy, rows, count in due]


def prune_for(seconds: float = float("inf")) -> Counter[str]:
    """Delete what the policies name, for about so many seconds. Return the number of deleted rows by policy.

    What is left, or locked by others, is for the next time.
    """
    ends, deleted = time.monotonic() + seconds, Counter[str]()
    for policy in POLICIES:
        rows = policy.find_due()
        keys = list(rows.order_by("pk").values_list("pk", flat=True))
        size = AT_ONCE.get(rows.model, MAX_ROWS)
        for start in range(0, len(keys), size):
            if time.monotonic() < ends:
                deleted[policy.name] += _delete(policy, rows.filter(pk__in=keys[start : start + size]))
    return deleted


def list_prunings() -> list[tuple[str, datetime]]:
    """Return the timed job that prunes at the next full hour, as argument and time; none without a policy or a bin."""
    days = (getattr(settings, f"BENCHBENCH_KEEP_{name}_DAYS") for name in RETENTION)
    if not (any(days) or Deletion.objects.exists()):
        return []
    return [("hourly", timezone.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1))]


def _delete(policy: Policy, rows: QuerySet[Any]) -> int:
    """Delete the rows that are still due, in one transaction. Return their number."""
    try:
        with limited_transaction(lock_seconds=LOCK_SECONDS):
            if rows.model is Benchmark:  # a launch waits, and so do a new baseline and a new round
                lock_in_order(Benchmark.objects.filter(pk__in=rows.values("pk")), no_key=False)
                lock_in_order(Run.objects.filter(benchmark__in=rows.values("pk")), no_key=False)
            instances = list(rows) if rows.model in AT_ONCE else []
            deleted = [str(row) for row in instances] or [str(rows.count())]
            for row in instances:
                _delete_row(row)
            if not instances:
                delete_rows(rows.model.objects.filter(pk__in=lock_in_order(rows, no_key=False)))
    except (ConflictError, DeletedError, HeldError) as error:
        log.warning("%s: left what is in use. %s", policy.name, error)
        return 0
    log.warning("%s: deleted after %d days: %s", policy.name, policy.days, ", ".join(deleted))
    return len(instances) or int(deleted[0])


def _delete_row(row: Model) -> None:
    if isinstance(row, Benchmark):
        Benchmark.objects.filter(pk=row.pk, rankings_deleted_at=None).update(rankings_deleted_at=Now())
        transaction.on_commit(partial(_delete_lists, row))
    elif isinstance(row, Index):
        delete_index(row)
    elif isinstance(row, Deletion):
        empty(row)
    else:
        row.delete()


def _delete_lists(benchmark: Benchmark) -> None:
    """Delete the lists of a benchmark, except the errors of queries without any: pages name and count those."""
    answered = StageList.objects.filter(source=OuterRef("source"), query=OuterRef("query"), error="")
    keys = list(ListSource.objects.filter(benchmark=benchmark).values_list("pk", flat=True))
    for start in range(0, len(keys), SOURCES):
        delete_rows(StageList.objects.filter(Exists(answered), source__in=keys[start : start + SOURCES]))
    delete_rows(PairList.objects.filter(benchmark=benchmark))
