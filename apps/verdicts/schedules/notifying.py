"""Notices to declared addresses: sent by a job, at least once, until the receiver accepts them or a day has passed.

A receiver gets one notice at a time, so that a later one never overtakes an earlier one. After a failure all notices to
it wait for a while.
"""

import hmac
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import django_rq
import stamina
from django.utils import timezone
from redis.exceptions import LockError
from redis.lock import Lock

from apps.engines.declarations import load_declarations, load_notice_address
from apps.engines.errors import EngineTimeoutError, TemporaryEngineError
from apps.engines.guards import Request, fetch
from apps.engines.templates import fill
from apps.records.models import Notice
from apps.verdicts import process
from benchbench.breaker import Breaker
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import dump_canonical

log = logging.getLogger(__name__)
LEASE = timedelta(minutes=5)  # after which another worker sends a notice whose worker was killed
WAITS = (timedelta(minutes=1), timedelta(hours=1))  # least and most time between jobs
GIVE_UP = timedelta(days=1)
ATTEMPTS, SECONDS = 3, 20.0  # of one job: its requests, and the time after which no other begins

breakers: defaultdict[str, Breaker] = defaultdict(lambda: Breaker(size=1, break_seconds=WAITS[0].total_seconds()))
process.add(breakers.clear)


class SupersededError(Exception):
    """The gate turned again, and the notice must not be sent any more."""


def list_destinations() -> list[str]:
    """Return the aliases under `notices` in the file BENCHBENCH_ENGINES."""
    return list(load_declarations().notices)


def send(notice_id: str) -> None:
    """Send a notice that is due, and store whether its receiver accepted it. A failure affects nothing else.

    It stays due while its receiver gets another one, or has just failed.
    """
    notice = Notice.objects.filter(pk=notice_id, due_at__lte=timezone.now()).first()
    if notice is None or breakers[notice.destination].is_open(time.monotonic()):
        return
    name = f"benchbench:notices:{notice.destination}"
    lock: Lock = django_rq.get_connection("default").lock(name, timeout=LEASE.total_seconds())
    if lock.acquire(blocking=False):
        try:
            _send(notice)
        finally:
            with suppress(LockError):  # it expired
                lock.release()


def _send(notice: Notice) -> None:
    """Send a notice and store the outcome.

    One conditional UPDATE takes the notice for LEASE. A worker killed before it stores the outcome leaves the notice to
    another, so the receiver may get it twice, with one Idempotency-Key. A failure is stored only while the notice is
    this worker's: meanwhile the gate may have turned again.
    """
    now = timezone.now()
    rows = Notice.objects.filter(pk=notice.pk)
    if not rows.filter(due_at__lte=now).update(due_at=now + LEASE):
        return
    leased = rows.filter(due_at=now + LEASE)
    breaker, started = breakers[notice.destination], time.monotonic()
    try:
        _post(notice, is_own=leased.exists)
    except SupersededError:
        return
    except BenchbenchError as error:
        log.warning("The notice %s was not delivered: %s", notice.pk, error.message)
        retry_after = 0.0
        if isinstance(error, TemporaryEngineError):
            retry_after = error.retry_after or 0.0
            breaker.record_failure(time.monotonic() - started, time.monotonic())
        age = timezone.now() - notice.created_at  # the next attempt waits as long
        wait = max(min(max(age, WAITS[0]), WAITS[1]), timedelta(seconds=retry_after))
        leased.update(error=error.message, due_at=timezone.now() + wait if age < GIVE_UP else None)
    else:
        breaker.record_success()
        rows.update(error="", due_at=None, delivered_at=timezone.now())


def _post(notice: Notice, *, is_own: Callable[[], bool]) -> None:
    """Post a notice as JSON, signed by the secret of its address.

    Raises EngineError if it was not accepted, and SupersededError before an attempt if the notice `is_own` no more.
    """
    address = load_notice_address(notice.destination)
    secret = address.read_secret()
    body = dump_canonical({"id": str(notice.pk), **notice.payload}).encode()
    headers = fill(address.headers, {"secret": secret.reveal()})
    headers |= {"Content-Type": "application/json", "Idempotency-Key": str(notice.pk)}
    if secret:
        headers["X-BenchBench-Signature"] = f"sha256={hmac.digest(secret.reveal().encode(), body, 'sha256').hex()}"
    request = Request("POST", address.url, headers, data=body)
    for attempt in stamina.retry_context(on=_is_repeated, attempts=ATTEMPTS, timeout=SECONDS):
        with attempt:
            if not is_own():
                raise SupersededError
            fetch(address, request, secret)


def _is_repeated(error: Exception) -> bool:
    """Return whether a request is repeated at once: not if the receiver was slow, or says when to come again."""
    is_temporary = isinstance(error, TemporaryEngineError) and not isinstance(error, EngineTimeoutError)
    return is_temporary and getattr(error, "retry_after", None) is None
