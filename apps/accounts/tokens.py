"""Tokens: personal ones, and pairs of JWTs, given for a password, exchanged, and ended.

A personal token is shown once and stored as its hash; a new password of its user ends it.

A sign-in is one row, and one refresh token is good for it at a time. An older refresh token is a copy, or its original
was stolen; the two cannot be told apart, so that the whole sign-in ends (RFC 9700, 4.14.2), with its access tokens.
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
from apps.accounts.throttling import count, hidden, uncount
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.names import checked_name

SIGN_IN = "sign_in"  # the claim of a JWT that names its row
logger = logging.getLogger(__name__)
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


def sign_in(username: str, password: str, *, scope: str, request: HttpRequest) -> dict[str, str]:
    """Return a pair of tokens for a user whose password is right; raise AuthenticationFailed for anybody else.

    Raises Throttled after too many wrong passwords for the name, whether somebody has it or not.
    """
    # Counted before the password is tried, or attempts at the same time would all be let through.
    counted = count("name", hidden(username))
    user = authenticate(request, username=username, password=password)
    if user is None:
        raise AuthenticationFailed("No active user has this name and password.")
    uncount(counted)
    SignIn.objects.filter(expires_at__lt=timezone.now()).delete()
    return _pair(open_sign_in(user, scope=scope))


def open_sign_in(user: Any, *, scope: str = Scope.WRITE) -> RefreshToken:
    """Return the first refresh token of a new sign-in of `user`."""
    token: RefreshToken = RefreshToken.for_user(user)
    opened = SignIn.objects.create(user=user, jti=token["jti"], expires_at=_expiry(token))
    token["scope"], token[SIGN_IN] = str(scope), str(opened.pk)  # the access token and all that follow copy them
    return token


def exchange(refresh: str) -> dict[str, str]:
    """Return the next pair for a refresh token, which ends with that.

    Raises AuthenticationFailed where the token is none or past, where the user is not active any more, and where the
    password changed since. A token that was exchanged before ends its sign-in besides, with every token of it.
    """
    token = _read(refresh)
    JWTAuthentication().get_user(token)
    opened, spent = SignIn.objects.filter(pk=token.get(SIGN_IN)), token["jti"]
    token.set_jti()
    token.set_exp()
    token.set_iat()
    # One conditional update: of two exchanges of one token at the same time the second finds it exchanged.
    if opened.filter(jti=spent).update(jti=token["jti"], expires_at=_expiry(token), updated_at=timezone.now()):
        return _pair(token)
    if opened.delete()[0]:
        logger.warning("A refresh token of user %s was used twice: that sign-in is ended.", token["user_id"])
    raise AuthenticationFailed(
        "The refresh token was used before, so all tokens of its sign-in were ended: sign in again.",
        code="token_not_valid",
    )


def sign_out(refresh: str) -> None:
    """End the sign-in of a refresh token, and every token that came of it."""
    if not SignIn.objects.filter(pk=_read(refresh).get(SIGN_IN)).delete()[0]:
        raise AuthenticationFailed("The sign-in of the refresh token has ended already.", code="token_not_valid")


def _read(refresh: Any) -> RefreshToken:
    try:
        return RefreshToken(refresh)
    except JWTError:
        raise AuthenticationFailed(
            "The refresh token is invalid or has expired: sign in again.", code="token_not_valid"
        ) from None


def _expiry(token: RefreshToken) -> Any:
    return timezone.now() + token.lifetime


def _pair(token: RefreshToken) -> dict[str, str]:
    return {"access": str(token.access_token), "refresh": str(token)}
