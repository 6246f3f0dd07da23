"""Statements over several rows that lock them in the order of their keys, so that two of them cannot deadlock."""

import logging
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import OperationalError, transaction
from django.db.models import Model, QuerySet

from benchbench.database.failures import DeadlockError, find_failure

log = logging.getLogger(__name__)
ATTEMPTS = 4
PAUSE_SECONDS = 0.05  # at most, before the second attempt; doubled for each further one
T = TypeVar("T")


def lock_in_order(rows: QuerySet[Model], *, no_key: bool = True) -> list[Any]:
    """Lock rows until the transaction ends, and return their primary keys in order.

    With `no_key`, rows that refer to these can be added meanwhile; a deletion needs the stronger lock.
    """
    return list(rows.select_for_update(of=("self",), no_key=no_key).order_by("pk").values_list("pk", flat=True))


def update_in_order(rows: QuerySet[Model], **values: object) -> int:
    """Update the rows of a queryset, and return their number."""
    with transaction.atomic():
        return rows.model._base_manager.filter(pk__in=lock_in_order(rows)).update(**values)


def delete_in_order(rows: QuerySet[Model]) -> int:
    """Delete the rows of a queryset, with those that refer to them, and return the number of the first."""
    with transaction.atomic():
        keys = lock_in_order(rows, no_key=False)
        rows.model._base_manager.filter(pk__in=keys).delete()
        return len(keys)


def retry_deadlocks(work: Callable[[], T]) -> T:
    """Do `work` in a transaction, and again if PostgreSQL ends it because of a deadlock. Return its result.

    Within another transaction it is a savepoint, whose locks are freed before the next attempt. `work` may run several
    times: it changes nothing but the database.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with transaction.atomic():
                return work()
        except OperationalError as error:
            if attempt == ATTEMPTS or not isinstance(find_failure(error), DeadlockError):
                raise
            log.warning("A deadlock ended a statement, which is tried again.")
            # Both sides of a deadlock may be retried: not at the same moment.
            time.sleep(PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.1, 1))  # nosec B311: not for a secret
    raise AssertionError("the last attempt returns or raises")
