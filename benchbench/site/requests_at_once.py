"""A limit on the requests that a web process answers at once: the others wait in turn, before they take a thread.

Each request in progress has a thread and a connection to PostgreSQL. Without the limit, requests beyond the pool would
wait for a connection, fail, and blame PostgreSQL. And a limit on a header that Django reads slowly.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from django.template import loader

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PROBES = frozenset({"/healthz", "/readyz"})  # asked by balancers, which take a process out that does not answer
WAIT_SECONDS = 50.0  # less than the minute after which balancers give up
RETRY_SECONDS = 5
API = "/api/"
BUSY = "The site is answering as many requests as it can. Nothing was changed: try again in a few seconds."


class RequestLimit:
    """An ASGI application that passes at most `at_once` requests to `application`, in the order in which they came.

    A request that waits longer than `wait_seconds` is refused with 503. 0 sets no limit.
    """

    def __init__(self, application: Application, at_once: int, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.application = application
        self.wait_seconds = wait_seconds
        self.slots = asyncio.Semaphore(at_once) if at_once else None
        self.answering: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.slots is None or scope["path"] in PROBES:
            await self.application(scope, receive, send)
            return
        try:
            await asyncio.wait_for(self.slots.acquire(), self.wait_seconds)
        except TimeoutError:
            await _refuse_busy(scope, send)
            return
        task = asyncio.create_task(self._answer(scope, receive, send))
        self.answering.add(task)
        task.add_done_callback(self.answering.discard)
        # A client that leaves does not stop the request's thread, so its slot is free only when the thread ends.
        await asyncio.shield(task)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = _Client(receive, send)
        try:
            await self.application(scope, client.receive, client.send)
        finally:
            assert self.slots is not None
            self.slots.release()


class _Client:
    """The client of a request. Its leaving ends an answer at the next piece that is sent, and not before.

    Django would cancel the request, and block the event loop until the request's thread ends.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self.has_left = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.has_left = True
            await asyncio.Event().wait()  # until the answer is complete
        return message

    async def send(self, message: Message) -> None:
        if self.has_left:
            raise asyncio.CancelledError  # as Django expects of a client that left
        await self._send(message)


async def refuse(
    scope: Scope, send: Send, status: int, code: str, sentence: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Answer a request with a refusal: JSON to programs that ask the API, a page to people."""
    if scope["path"].startswith(API):
        kind, text = b"application/json", json.dumps({"detail": sentence, "code": code})
    else:
        context = {"title": code.replace("_", " ").capitalize(), "sentence": sentence}
        kind, text = b"text/html; charset=utf-8", loader.render_to_string("errors/plain.html", context)
    combined = [(b"content-type", kind), (b"cache-control", b"no-store"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": combined})
    await send({"type": "http.response.body", "body": text.encode()})


async def _refuse_busy(scope: Scope, send: Send) -> None:
    seconds = str(RETRY_SECONDS).encode()
    headers = [(b"retry-after", seconds)]
    if scope["method"] == "GET" and not scope["path"].startswith(API):
        headers.append((b"refresh", seconds))
    await refuse(scope, send, 503, "busy", BUSY, headers)


LONGEST = 500  # bytes; no type that a client states is longer than a fraction of it
TOO_LONG = f"The header Content-Type has more than {LONGEST} bytes: shorten it."


class ShortHeaders:
    """An ASGI application that passes requests to `application`, and refuses those with a longer Content-Type.

    Django parses it, before it does anything else, in time quadratic in its length.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if sum(len(value) for name, value in scope["headers"] if name == b"content-type") > LONGEST:
            await refuse(scope, send, 413, "too_large", TOO_LONG)
        else:
            await self.application(scope, receive, send)
