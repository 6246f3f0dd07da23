"""Time from a change of a running benchmark to its message at 100 watchers of one web process, by kind of socket.

`hints` are what pages of the admin read, `events` the state itself, which programs read (docs/events.md). A change is a
batch that has done one unit more; it counts from before its UPDATE until a watcher has read the next
message. Polls, each five seconds, send messages too, so that some of the times are too short.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import throwaway

throwaway.open_site()

import httpx
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db.models import F
from websockets.asyncio.client import connect

from apps.accounts.tokens import issue_token
from apps.execution.launching import launch
from apps.operations.events import publish
from apps.operations.models import Batch, Operation
from tests.created import create_benchmark
from tests.library import make_library

PORT, WATCHERS, CHANGES, PAUSE_SECONDS = 8765, 100, 30, 1.0
PEOPLE = 20  # a person may have few sockets


@contextmanager
def serving() -> Iterator[str]:
    """Serve the site by daphne, and yield its host and port."""
    command = [sys.executable, "-m", "daphne", "-v", "0", "-p", str(PORT), "benchbench.asgi:application"]
    process = subprocess.Popen(command, cwd=throwaway.ROOT)
    try:
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{PORT}/healthz")
            except httpx.TransportError:
                time.sleep(0.2)
            else:
                break
        yield f"127.0.0.1:{PORT}"
    finally:
        process.terminate()
        process.wait()


def start_benchmark() -> Operation:
    """Start a benchmark that no worker takes."""
    return launch(create_benchmark(make_library(documents=30, queries=12), name="watched", matrix={}))


def change(operation: Operation) -> float:
    """Change the operation as a worker does, and return when it began."""
    began = time.monotonic()
    Batch.objects.filter(operation=operation).update(done_units=F("done_units") + 1)
    publish(operation.pk, always=True)
    return began


async def measure(address: str, tokens: list[str], operation: Operation) -> list[float]:
    """Return the milliseconds until each watcher had each change."""
    milliseconds: list[float] = []
    sockets = [
        await connect(address, subprotocols=[f"access_token.{tokens[n % len(tokens)]}"])  # type: ignore[list-item]
        for n in range(WATCHERS)
    ]
    arrivals: list[list[float]] = [[] for _ in sockets]

    async def read(socket: Any, moments: list[float]) -> None:
        async for _ in socket:
            moments.append(time.monotonic())

    readers = [asyncio.create_task(read(*pair)) for pair in zip(sockets, arrivals, strict=True)]
    await asyncio.sleep(5 * PAUSE_SECONDS)
    for _ in range(CHANGES):
        began = await sync_to_async(change)(operation)
        await asyncio.sleep(PAUSE_SECONDS)
        firsts = [
            next((moment for moment in moments if moment >= began), began + PAUSE_SECONDS) for moments in arrivals
        ]
        milliseconds += [1000 * (first - began) for first in firsts]
    for socket in sockets:
        await socket.close()
    await asyncio.gather(*readers)
    return milliseconds


def main() -> None:
    people = [User.objects.create_superuser(f"watcher{n}", password=None) for n in range(PEOPLE)]
    tokens = [issue_token(person, name="watching")[1] for person in people]
    operation = start_benchmark()
    with serving() as host:
        for kind, path in (("hints", f"{operation.pk}/hints"), ("events", str(operation.pk))):
            times = asyncio.run(measure(f"ws://{host}/ws/operations/{path}", tokens, operation))
            quantiles = statistics.quantiles(times, n=20)
            print(
                f"{kind:8}{WATCHERS} watchers: median {statistics.median(times):5.0f} ms, p95 {quantiles[-1]:5.0f} ms"
            )


if __name__ == "__main__":
    main()
