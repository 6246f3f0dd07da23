"""Pairs of JWTs: given for a password, exchanged, and ended.

A sign-in is one row, and one refresh token is good for it at a time. Whoever comes with an older one holds a copy, or
was robbed of the original; nobody can tell which of the two it is, so that the whole sign-in ends (RFC 9700, 4.14.2).
"""

import logging
from typing import Any

from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.exceptions import AuthenticationFailed
from rest_framework_simplejwt.authentication import JWTAuthentication
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.tokens import RefreshToken

from apps.api.access.authentication import SIGN_IN
from apps.api.access.throttling import count, uncount
from apps.api.models import Scope, SignIn

Pair = dict[str, str]
logger = logging.getLogger(__name__)


def sign_in(username: str, password: str, *, scope: str, request: HttpRequest) -> Pair:
    """Return a pair of tokens for a user whose password is right; raise AuthenticationFailed for anybody else.

    Raises Throttled after too many wrong passwords for the name, whether somebody has it or not.
    """
    # Counted before the password is tried, or attempts at the same time would all be let through.
    counted = count("name", _hidden(username))
    user = authenticate(request, username=username, password=password)
    if user is None:
        raise AuthenticationFailed("No active user has this name and password.")
    uncount(counted)
    SignIn.objects.filter(expires_at__lt=timezone.now()).delete()
    return _pair(open_sign_in(user, scope=scope))


def count_guess(username: str, *, address: str) -> list[str]:
    """Count an attempt on the page of the admin, and return what `uncount` takes it back by if it was no guess.

    A name counts for each address by itself: counted from all of them, anybody could lock its user out of the site.
    Raises Throttled.
    """
    return [count("auth", address), count("name", f"{_hidden(username)}:{address}")]


def open_sign_in(user: Any, *, scope: str = Scope.WRITE) -> RefreshToken:
    """Return the first refresh token of a new sign-in of `user`."""
    token: RefreshToken = RefreshToken.for_user(user)
    opened = SignIn.objects.create(user=user, jti=token["jti"], expires_at=_expiry(token))
    token["scope"], token[SIGN_IN] = str(scope), str(opened.pk)  # the access token and all that follow copy them
    return token


def exchange(refresh: str) -> Pair:
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
    except TokenError:
        raise AuthenticationFailed(
            "The refresh token is invalid or has expired: sign in again.", code="token_not_valid"
        ) from None


def _hidden(username: str) -> str:
    """Return what stands for a name in Redis, where nobody is to read who signs in, or their mistyped passwords."""
    return salted_hmac("apps.api.access.signing_in", username.casefold()).hexdigest()


def _expiry(token: RefreshToken) -> Any:
    return timezone.now() + token.lifetime


def _pair(token: RefreshToken) -> Pair:
    return {"access": str(token.access_token), "refresh": str(token)}
