"""The user of a WebSocket: checked when it connects, and repeatedly while it is open.

A program offers its token as the subprotocol `access_token.<token>`, because a browser's WebSocket cannot send headers.
A page of the site uses the session's cookie. If a token is offered, the cookie is ignored.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.sessions import CookieMiddleware
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from rest_framework.exceptions import AuthenticationFailed

from apps.accounts.models import AccessToken
from apps.api.access import find_user, open_user

Identify = Callable[[], Awaitable[tuple[Any, float | None]]]
SUBPROTOCOL = "access_token."


def add_identity(application: Any) -> Any:
    """Put `identify` and `subprotocol` into the scope of an application, for `apps.operations.consumers`."""

    async def identifying(scope: Any, receive: Any, send: Any) -> None:
        offered = next((name for name in scope["subprotocols"] if name.startswith(SUBPROTOCOL)), None)
        if offered is None:
            identify = _build_session_identify(scope["cookies"].get(settings.SESSION_COOKIE_NAME))
        else:
            identify = _build_token_identify(offered.removeprefix(SUBPROTOCOL))
        await application({**scope, "identify": identify, "subprotocol": offered}, receive, send)

    return CookieMiddleware(identifying)


def _build_session_identify(key: str | None) -> Identify:
    store = import_module(settings.SESSION_ENGINE).SessionStore

    async def identify() -> tuple[Any, float | None]:
        # Use a new store each time: a store that has read its row does not notice its deletion.
        user = await get_user({"session": store(key)})
        if settings.DISABLE_AUTH and not user.is_authenticated:
            user = await database_sync_to_async(open_user)()
        return user, None

    return identify


def _build_token_identify(secret: str) -> Identify:
    @database_sync_to_async
    def identify() -> tuple[Any, float | None]:
        try:
            user, token = find_user(secret.encode())
        except AuthenticationFailed:
            return open_user() if settings.DISABLE_AUTH else AnonymousUser(), None
        if isinstance(token, AccessToken):
            return user, token.expires_at.timestamp() if token.expires_at else None
        return user, float(token["exp"])

    return identify
