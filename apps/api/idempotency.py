"""The header Idempotency-Key: a repeated request is executed once."""

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import Case, When
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.models import StoredAnswer
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.reading.strict_json import dump_canonical

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
KEY = re.compile(r"[!-~]{1,200}")
DELETED_PER_REQUEST = 100  # old answers that one request deletes
Handler = Callable[..., Response]


class ReusedKeyError(ConflictError):
    """The key was used for another request before."""

    code = "idempotency_key_reused"


def idempotent(handler: Handler) -> Callable[..., HttpResponse]:
    """Make a method of an endpoint honour Idempotency-Key.

    The request's changes and the stored answer are one transaction, so neither exists without the other, wherever the
    server stops. A second request with the key waits for the first and gets its answer. An error stores nothing, so the
    request can be sent again. Jobs must be enqueued on commit, as everywhere.
    """

    @wraps(handler)
    def once(self: object, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        key = request.headers.get(HEADER)
        if key is None:
            return handler(self, request, *args, **kwargs)
        if not KEY.fullmatch(key):
            raise BenchbenchError(f"{HEADER} must be 1 to 200 visible ASCII characters, such as a UUID.", field=HEADER)
        digest, path = hash_body(request.data), request.path[:300].lower()  # an id may come in either case
        with transaction.atomic():
            _delete_expired(request.user, path, key)
            # The unique row is the lock: a second request waits here until the first commits or fails.
            record, is_new = StoredAnswer.objects.get_or_create(
                user=request.user, path=path, key=key, defaults={"body_hash": digest}
            )
            if not is_new:
                return _replay(record, digest)
            answer = handler(self, request, *args, **kwargs)
            body = JSONRenderer().render(answer.data).decode()
            StoredAnswer.objects.filter(pk=record.pk).update(status=answer.status_code, body=body)
        return answer

    once.idempotent = True  # type: ignore[attr-defined]
    return once


def hash_body(data: object) -> str:
    """Return the SHA-256 of a request's data; for a form, of its values and files, since boundaries are random."""
    if isinstance(data, QueryDict):
        data = [[name, [_encode_value(value) for value in values]] for name, values in sorted(data.lists())]
    return sha256(dump_canonical(data).encode()).hexdigest()


def _encode_value(value: object) -> Any:
    if not isinstance(value, UploadedFile):
        return value
    digest = sha256()
    chunks: Iterable[bytes] = value.chunks()
    for chunk in chunks:
        digest.update(chunk)
    value.seek(0)
    return [value.name, digest.hexdigest()]


def _replay(record: StoredAnswer, digest: str) -> HttpResponse:
    if record.body_hash != digest:
        raise ReusedKeyError(
            f"The {HEADER} {record.key!r} was used with another body before: send a new key with each new request.",
            field=HEADER,
        )
    return HttpResponse(record.body, status=record.status, content_type="application/json", headers={REPLAYED: "true"})


def _delete_expired(user: User, path: str, key: str) -> None:
    """Delete the expired answer of this key, and some more expired answers of the user.

    Answers that another request is deleting are skipped.
    """
    past = timezone.now() - timedelta(hours=settings.BENCHBENCH_IDEMPOTENCY_HOURS)
    old = StoredAnswer.objects.filter(user=user, created_at__lt=past).select_for_update(skip_locked=True)
    first = Case(When(path=path, key=key, then=0), default=1)
    if oldest := list(old.order_by(first, "pk").values_list("pk", flat=True)[:DELETED_PER_REQUEST]):
        StoredAnswer.objects.filter(pk__in=oldest).delete()
