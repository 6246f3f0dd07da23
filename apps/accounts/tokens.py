"""Personal tokens, and pairs of JWTs issued for a password, exchanged and revoked.

A personal token is shown once and stored as its hash. A new password of its user revokes it.

A sign-in is one row with one valid refresh token at a time. Reuse of an older refresh token means that one of the two
was stolen, and it is unknown which. So the whole sign-in ends with its access tokens (RFC 9700, 4.14.2).
"""

import logging
import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.db.models.signals import pre_save
from django.db.utils import IntegrityError
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed
from rest_framework_simplejwt.authentication import JWTAuthentication
from rest_framework_simplejwt.exceptions import TokenError as JWTError
from rest_framework_simplejwt.tokens import RefreshToken

from apps.accounts.models import AccessToken, Scope, SignIn
from apps.accounts.throttling import count, hash_name, uncount
from benchbench.database.ordered import delete_in_order, update_in_order
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.names import check_name

SIGN_IN = "sign_in"  # the claim of a JWT that names its row
logger = logging.getLogger(__name__)
PREFIX = "bb_"
SEEN_EVERY = timedelta(minutes=1)  # a busy client costs one write a minute, not one a request


class TokenError(BenchbenchError):
    """A token cannot be created."""

    code = "token"


def issue_token(
    user: User, *, name: str, scope: str = Scope.READ, expires_at: datetime | None = None
) -> tuple[AccessToken, str]:
    """Create a token of `user`. Return it with its secret, which cannot be shown again.

    Raises ConflictError if the user has an active token of that name, TokenError for an expiry in the past.
    """
    if expires_at is not None and expires_at <= timezone.now():
        raise TokenError("The expiry is in the past: choose a later time.", field="expires_at")
    name = check_name(name, "token", max_length=100)
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
            f'You already have a token "{name}": revoke it, or choose another name.', field="name"
        ) from None
    return token, secret


def find_token(secret: str) -> AccessToken | None:
    """Return the token with its user, or None if unknown, revoked or expired. Update `last_used_at`."""
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
    """Revoke a token immediately. No effect if it is revoked already."""
    AccessToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now())


def _digest(secret: str) -> str:
    # 256 random bits cannot be guessed, so they need no slow hash.
    return sha256(secret.encode()).hexdigest()


@receiver(pre_save, sender=User)
def end_with_password(sender: type[User], instance: Any, update_fields: Any = None, **kwargs: Any) -> None:
    """Revoke the tokens of a user whose password is about to change or to become unusable.

    Django hashes the same password again at a sign-in after the hasher changed; that revokes nothing. Only
    `set_password` leaves the plain text in `_password`.
    """
    if instance._state.adding or (update_fields is not None and "password" not in update_fields):
        return
    if instance._password is None and instance.has_usable_password():
        return
    if User.objects.filter(pk=instance.pk).exclude(password=instance.password).exists():
        update_in_order(AccessToken.objects.filter(user=instance.pk, revoked_at=None), revoked_at=timezone.now())


def sign_in(username: str, password: str, *, scope: str, request: HttpRequest) -> dict[str, str]:
    """Return a pair of tokens if the password is right. Raises AuthenticationFailed otherwise.

    Raises Throttled after too many wrong passwords for the name, whether or not the user exists.
    """
    # Count before checking the password, or simultaneous attempts would all pass.
    counted = count("name", hash_name(username))
    user = authenticate(request, username=username, password=password)
    if user is None:
        raise AuthenticationFailed("No active user has this name and password.")
    uncount(counted)
    delete_in_order(SignIn.objects.filter(expires_at__lt=timezone.now()))
    return _build_pair(open_sign_in(user, scope=scope))


def open_sign_in(user: User, *, scope: str = Scope.WRITE) -> RefreshToken:
    """Return the first refresh token of a new sign-in of `user`."""
    token: RefreshToken = RefreshToken.for_user(user)
    opened = SignIn.objects.create(user=user, jti=token["jti"], expires_at=_compute_expiry(token))
    token["scope"], token[SIGN_IN] = str(scope), str(opened.pk)  # copied to the access token and all later tokens
    return token


def exchange(refresh: str) -> dict[str, str]:
    """Return the next pair for a refresh token and invalidate the token.

    Raises AuthenticationFailed if the token is invalid or expired, the user is inactive, or the password changed since.
    A token that was exchanged before also ends its sign-in with all its tokens.
    """
    token = _read(refresh)
    JWTAuthentication().get_user(token)
    opened, spent = SignIn.objects.filter(pk=token.get(SIGN_IN)), token["jti"]
    token.set_jti()
    token.set_exp()
    token.set_iat()
    # A conditional update: of two simultaneous exchanges of a token, the second fails.
    if opened.filter(jti=spent).update(jti=token["jti"], expires_at=_compute_expiry(token), updated_at=timezone.now()):
        return _build_pair(token)
    if opened.delete()[0]:
        logger.warning("A refresh token of user %s was used twice, so the sign-in was ended.", token["user_id"])
    raise AuthenticationFailed(
        "The refresh token was already used, so its sign-in was ended: sign in again.",
        code="token_not_valid",
    )


def sign_out(refresh: str) -> None:
    """End the sign-in of a refresh token, with all its tokens."""
    if not SignIn.objects.filter(pk=_read(refresh).get(SIGN_IN)).delete()[0]:
        raise AuthenticationFailed("The sign-in of the refresh token has already ended.", code="token_not_valid")


def _read(refresh: Any) -> RefreshToken:
    try:
        return RefreshToken(refresh)
    except JWTError:
        raise AuthenticationFailed(
            "The refresh token is invalid or has expired: sign in again.", code="token_not_valid"
        ) from None


def _compute_expiry(token: RefreshToken) -> Any:
    return timezone.now() + token.lifetime


def _build_pair(token: RefreshToken) -> dict[str, str]:
    return {"access": str(token.access_token), "refresh": str(token)}
