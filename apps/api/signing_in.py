"""Pairs of JWTs: given for a password, exchanged, and ended."""

from typing import Any

from django.contrib.auth import authenticate
from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed
from rest_framework_simplejwt.authentication import JWTAuthentication
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.tokens import RefreshToken

Pair = dict[str, str]


def sign_in(username: str, password: str, *, scope: str, request: HttpRequest) -> Pair:
    """Return a pair of tokens for a user whose password is right; raise AuthenticationFailed for anybody else."""
    user = authenticate(request, username=username, password=password)
    if user is None:
        raise AuthenticationFailed("No active user has this name and password.")
    token = RefreshToken.for_user(user)
    token["scope"] = scope  # the access token and all that follow copy it
    return _pair(token)


def exchange(refresh: str) -> Pair:
    """Return the next pair for a refresh token, which ends with that: of two exchanges of one token one is refused.

    Raises AuthenticationFailed where the token is none, past or used, where the user is not active any more, and where
    the password changed since.
    """
    token = _read(refresh)
    JWTAuthentication().get_user(token)
    ended: Any = token.blacklist()  # (row, whether it is new), whatever its annotation says
    if not ended[1]:
        raise AuthenticationFailed("The refresh token was used already: sign in again.", code="token_not_valid")
    token.set_jti()
    token.set_exp()
    token.set_iat()
    token.outstand()
    return _pair(token)


def sign_out(refresh: str) -> None:
    """End a refresh token. Access tokens that came of it last their few minutes."""
    _read(refresh).blacklist()


def _read(refresh: Any) -> RefreshToken:
    try:
        return RefreshToken(refresh)
    except TokenError:
        raise AuthenticationFailed(
            "The refresh token is not valid, past or used already: sign in again.", code="token_not_valid"
        ) from None


def _pair(token: RefreshToken) -> Pair:
    return {"access": str(token.access_token), "refresh": str(token)}
