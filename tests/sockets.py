"""Sockets on the site's own ASGI application, with the credentials that a browser or a program sends."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client

HOST = "localhost:8000"


def make_watcher(name: str, **fields: Any) -> User:
    """Return a staff user who may view operations, and nothing more."""
    user = User.objects.create_user(name, **{"is_staff": True, **fields})
    user.user_permissions.add(Permission.objects.get(codename="view_operation"))
    return user


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def socket(
    path: str, user: User | None = None, *, origin: str | None = f"http://{HOST}", token: str | None = None
) -> WebsocketCommunicator:
    """Return a socket that is not connected yet: logged in as `user`, or with an access token."""
    from benchbench.asgi import application

    headers = [(b"host", HOST.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    if user is not None:
        headers.append((b"cookie", cookie_of(user).encode()))
    offered = None if token is None else [f"access_token.{token}"]
    return WebsocketCommunicator(application, path, headers=headers, subprotocols=offered)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Let an asynchronous test run in an event loop, on the database connection of its fixtures."""

    @wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        async_to_sync(test)(*args, **fixtures)

    return run


@asynccontextmanager
async def watching(path: str, user: User) -> AsyncIterator[tuple[WebsocketCommunicator, dict[str, Any]]]:
    """Open a socket, and close it at the end; yield it with its first message."""
    communicator = await sync_to_async(socket)(path, user)
    first = await opened(communicator)
    yield communicator, first
    await communicator.disconnect()


async def opened(communicator: WebsocketCommunicator) -> dict[str, Any]:
    """Connect, and return the first message."""
    connected, _ = await communicator.connect(timeout=60)
    assert connected
    first: dict[str, Any] = await communicator.receive_json_from(timeout=60)
    return first


async def closed(communicator: WebsocketCommunicator) -> tuple[str, int]:
    """Read on to the end, and return why it came: the code of the last error, and the code of the close."""
    refusal = ""
    while (output := await communicator.receive_output(timeout=60))["type"] != "websocket.close":
        message = json.loads(output["text"])
        refusal = message["data"]["code"] if message["type"] == "error" else refusal
    await asyncio.sleep(0.02)  # channels_redis does not hear of an end while it only begins to listen: a second is lost
    await communicator.disconnect()
    return refusal, int(output["code"])


async def refused(communicator: WebsocketCommunicator) -> tuple[str, int]:
    connected, _ = await communicator.connect(timeout=60)
    assert connected, "a socket is accepted, then closed"
    return await closed(communicator)
