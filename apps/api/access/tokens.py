"""Personal tokens: shown once, and stored as their hash; a new password of their user ends them."""

import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.signals import pre_save
from django.db.utils import IntegrityError
from django.dispatch import receiver
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


@receiver(pre_save, sender=User)
def end_with_password(sender: type[User], instance: Any, update_fields: Any = None, **kwargs: Any) -> None:
    """Revoke the tokens of a user whose password is about to change, or to be none.

    The same password hashed anew, as Django does at a sign-in after its hasher changed, is no new one: only of one that
    is set does the row hold the text.
    """
    if instance._state.adding or (update_fields is not None and "password" not in update_fields):
        return
    if instance._password is None and instance.has_usable_password():
        return
    if User.objects.filter(pk=instance.pk).exclude(password=instance.password).exists():
        AccessToken.objects.filter(user=instance.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())
