"""Notices to declared addresses: sent by a job, at least once, until the receiver accepts them or a day has passed."""

import hmac
import logging
from datetime import timedelta

import stamina
from django.utils import timezone

from apps.benchmarks.models import Notice
from apps.engines.declarations import load_declarations, load_notice_address
from apps.engines.errors import TemporaryEngineError
from apps.engines.guards import Request, fetch
from apps.engines.templates import fill
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import dump_canonical

log = logging.getLogger(__name__)
LEASE = timedelta(minutes=5)  # after which another worker sends a notice whose worker was killed
WAITS = (timedelta(minutes=1), timedelta(hours=1))  # least and most time between jobs
GIVE_UP = timedelta(days=1)
ATTEMPTS, SECONDS = 3, 20.0  # of one job


def list_destinations() -> list[str]:
    """Return the aliases under `notices` in the file BENCHBENCH_ENGINES."""
    return list(load_declarations().notices)


def send(notice_id: str) -> None:
    """Send a notice that is due, and store whether its receiver accepted it. A failure affects nothing else.

    One conditional UPDATE takes the notice for LEASE. A worker killed before it stores the outcome leaves the notice to
    another, so the receiver may get it twice, with one Idempotency-Key.
    """
    now = timezone.now()
    if not Notice.objects.filter(pk=notice_id, due_at__lte=now).update(due_at=now + LEASE):
        return
    notice = Notice.objects.get(pk=notice_id)
    try:
        _post(notice)
    except BenchbenchError as error:
        log.warning("The notice %s was not delivered: %s", notice.pk, error.message)
        age = timezone.now() - notice.created_at  # the next attempt waits as long
        notice.due_at = timezone.now() + min(max(age, WAITS[0]), WAITS[1]) if age < GIVE_UP else None
        notice.error = error.message
    else:
        notice.error, notice.due_at, notice.delivered_at = "", None, timezone.now()
    notice.save(update_fields=["error", "due_at", "delivered_at"])


def _post(notice: Notice) -> None:
    """Post a notice as JSON, signed by the secret of its address. Raises EngineError if it was not accepted."""
    address = load_notice_address(notice.destination)
    secret = address.read_secret()
    body = dump_canonical({"id": str(notice.pk), **notice.payload}).encode()
    headers = fill(address.headers, {"secret": secret.reveal()})
    headers |= {"Content-Type": "application/json", "Idempotency-Key": str(notice.pk)}
    if secret:
        headers["X-BenchBench-Signature"] = f"sha256={hmac.digest(secret.reveal().encode(), body, 'sha256').hex()}"
    request = Request("POST", address.url, headers, data=body)
    for attempt in stamina.retry_context(on=TemporaryEngineError, attempts=ATTEMPTS, timeout=SECONDS):
        with attempt:
            fetch(address, request, secret)
