"""Readers of one web process at once: answers by status, times, and whether a balancer's probe is answered.

Each reader has a token and asks what a script asks about a benchmark, one request after the other; each tenth opens
pages with a session instead. Sockets watch the benchmark meanwhile, and /readyz is asked every second. At most 1 % of
the requests may be refused, and none of the probe's. The load of the machine is printed: other work slows all of it.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import throwaway

throwaway.open_site()

import httpx
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from watching import serving
from websockets.asyncio.client import connect

from apps.accounts.tokens import issue_token
from apps.benchmarks.launching import launch
from apps.operations.models import Operation
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark

PATIENCE_SECONDS, PROBE_SECONDS = 90.0, 5.0
PEOPLE: list[tuple[str, str]] = []  # the token and the session of each
PAGED = 10  # of so many readers one opens pages


@dataclass
class Seen:
    """The answers of one kind by status, and their seconds."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def describe(self) -> str:
        if len(self.seconds) < 2:
            return str(dict(self.statuses))
        ordered = statistics.quantiles(self.seconds, n=20)
        times = f"median {statistics.median(ordered):.2f} s, p95 {ordered[-1]:.2f} s"
        return f"{len(self.seconds):,} answers, {times}; by status {dict(sorted(self.statuses.items()))}"


async def ask(client: httpx.AsyncClient, path: str, seen: Seen) -> None:
    began = time.monotonic()
    try:
        answer = await client.get(path)
        seen.statuses[str(answer.status_code)] += 1
    except httpx.HTTPError as error:
        seen.statuses[type(error).__name__] += 1
    seen.seconds.append(time.monotonic() - began)


async def read(host: str, headers: dict[str, str], paths: list[str], until: float, seen: Seen, pause: float) -> None:
    """Ask for the paths in turn until the end."""
    async with httpx.AsyncClient(base_url=f"http://{host}", headers=headers, timeout=PATIENCE_SECONDS) as client:
        turn = 0
        while time.monotonic() < until:
            await ask(client, paths[turn % len(paths)], seen)
            turn += 1
            await asyncio.sleep(pause)


async def watch(address: str, token: str, until: float, seen: Seen) -> None:
    try:
        async with connect(address, subprotocols=[f"access_token.{token}"], open_timeout=60) as socket:  # type: ignore[list-item]
            while (left := until - time.monotonic()) > 0:
                try:
                    await asyncio.wait_for(socket.recv(), left)
                    seen.statuses["messages"] += 1
                except TimeoutError:
                    break
        seen.statuses["stayed open"] += 1
    except Exception as error:  # whatever ends a socket is counted
        seen.statuses[type(error).__name__] += 1


async def measure(host: str, operation: Operation, stated: argparse.Namespace) -> dict[str, Seen]:
    seen: defaultdict[str, Seen] = defaultdict(Seen)
    until, of_it = time.monotonic() + stated.seconds, f"/api/v2/benchmarks/{operation.subject_id}"
    api = [of_it, f"{of_it}/results", "/api/v2/benchmarks", f"/api/v2/operations/{operation.pk}", "/api/v2/collections"]
    pages = ["/admin/", f"/admin/benchmarks/benchmark/{operation.subject_id}/change/", "/admin/datasets/dataset/"]
    tokens = PEOPLE[: stated.readers]
    socket = f"ws://{host}/ws/operations/{operation.pk}"
    work = [
        read(host, {"Authorization": f"Bearer {token}"}, api, until, seen["API"], stated.pause)
        for number, (token, _) in enumerate(tokens)
        if number % PAGED
    ]
    work += [
        read(host, {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}, pages, until, seen["pages"], stated.pause)
        for _, session in tokens[::PAGED]
    ]
    work += [watch(socket, tokens[n % len(tokens)][0], until, seen["sockets"]) for n in range(stated.sockets)]
    work.append(probe(host, until, seen["/readyz"]))
    await asyncio.gather(*work)
    return seen


async def probe(host: str, until: float, seen: Seen) -> None:
    """Ask whether the process is ready, as a balancer does: on new connections, and with little patience."""
    while time.monotonic() < until:
        async with httpx.AsyncClient(base_url=f"http://{host}", timeout=PROBE_SECONDS) as client:
            await ask(client, "/readyz", seen)
        await asyncio.sleep(1)


def make_people(readers: int) -> None:
    """Make users with a token and a session each."""
    for number in range(readers):
        user, client = User.objects.create_superuser(f"reader {number}", password=None), Client()
        client.force_login(user)
        PEOPLE.append((issue_token(user, name="reading")[1], client.cookies[settings.SESSION_COOKIE_NAME].value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--sockets", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds between two requests of a reader (default: 0)"
    )
    stated = parser.parse_args()
    make_people(stated.readers)
    operation = launch(create_benchmark(make_library(documents=30, queries=12), name="watched", matrix={}))
    before = os.getloadavg()[0]
    with serving() as host:
        seen = asyncio.run(measure(host, operation, stated))
    print(f"{stated.readers} readers and {stated.sockets} sockets for {stated.seconds:g} s, one web process:")
    print(f"load of the machine {before:.1f} before, {os.getloadavg()[0]:.1f} at the end")
    for kind, answers in seen.items():
        print(f"  {kind:8} {answers.describe()}")
    asked = seen["API"].statuses + seen["pages"].statuses
    refused = asked.total() - asked["200"]
    print(f"  refused or lost: {refused:,} of {asked.total():,} ({refused / max(1, asked.total()):.2%})")
    lost = seen["/readyz"].statuses.total() - seen["/readyz"].statuses["200"]
    print(f"  probes without 200: {lost:,} of {seen['/readyz'].statuses.total():,}")


if __name__ == "__main__":
    main()
