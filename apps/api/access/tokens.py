"""Personal tokens: made once, shown once, known afterwards by their hash."""

import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.utils import IntegrityError
from django.utils import timezone

from apps.api.models import AccessToken, Scope
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.names import checked_name

PREFIX = "bb_"
SEEN_EVERY = timedelta(minutes=1)  # so that a busy client costs a write a minute, and not one a request


class TokenError(BenchbenchError):
    """A token that cannot be made."""

    code = "token"


def issue_token(
    user: Any, *, name: str, scope: str = Scope.READ, expires_at: datetime | None = None
) -> tuple[AccessToken, str]:
    """Make a token of `user` and return it with its secret, which nothing can tell again.

    Raises ConflictError where the user has an active token of that name, TokenError for an expiry that is past.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise TokenError("The expiry is in the past: choose a later time.", field="expires_at")
    name = checked_name(name, "token")
    secret = PREFIX + secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            token = AccessToken.objects.create(
                user=user,
                name=name,
                scope=scope,
                digest=_digest(secret),
                hint=secret[:8],
                expires_at=expires_at,
            )
    except IntegrityError:
        raise ConflictError(
            f'You have a token called "{name}": revoke it, or choose another name.', field="name"
        ) from None
    return token, secret


def find_token(secret: str) -> AccessToken | None:
    """Return the token with its user, or None where it is unknown, revoked or expired; note that it was used."""
    now = timezone.now()
    lasting = Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    token = (
        AccessToken.objects.filter(lasting, digest=_digest(secret), revoked_at__isnull=True)
        .select_related("user")
        .first()
    )
    if token and (token.last_used_at is None or token.last_used_at < now - SEEN_EVERY):
        AccessToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def revoke_token(token: AccessToken) -> None:
    """End a token at once. One that is revoked already stays as it is."""
    AccessToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())


def _digest(secret: str) -> str:
    # 256 random bits need no slow hash: nobody can guess them.
    return sha256(secret.encode()).hexdigest()
