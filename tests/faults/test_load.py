"""100 watchers and 20 API clients of three benchmarks, through nginx and two web processes."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from websockets.asyncio.client import connect

from apps.accounts.roles import list_role_permissions
from apps.accounts.tokens import issue_token
from apps.execution.launching import launch
from apps.operations.models import Operation
from apps.records.models import Benchmark
from tests.benchmarks.figures import run_key
from tests.created import create_benchmark
from tests.faults.kit import HANG_SECONDS
from tests.faults.work import MATRIX
from tests.library import make_library

STATED_SECONDS = 60
OWNERS = ("ada", "bob", "cleo")
PEOPLE, SOCKETS = 20, 5  # each person is an API client, and watches with so many sockets
QUERIES = 80
PAUSE_SECONDS = 1.0  # between two requests of a client, as scripts that poll have
GROWTH_MB = 64  # a web process may grow by, of all who watch


class Person:
    """A token, and what its bearer saw."""

    def __init__(self, site: str, token: str) -> None:
        self.site, self.token = site, token
        self.faults: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.ends = 0

    async def watch(self, operation: str) -> None:
        """Watch an operation to its end, as the client of docs/events.md does."""
        address = self.site.replace("http", "ws", 1)
        async with connect(
            f"{address}/ws/operations/{operation}",
            subprotocols=[f"access_token.{self.token}"],
            open_timeout=HANG_SECONDS,
        ) as socket:
            async for message in socket:
                data = json.loads(message)["data"]
                if data.get("stage") in ("completed", "failed", "cancelled"):
                    self.ends += 1
                    self.faults[data["status"]] += data["status"] != "completed"
                    return

    async def poll(self, benchmark: Benchmark, until: asyncio.Event) -> None:
        """Ask what scripts ask of a benchmark, in turn, until told to end."""
        of_it = f"benchmarks/{benchmark.pk}"
        paths = (of_it, f"{of_it}/results", "benchmarks", f"operations/{benchmark.operation_id}", "collections")
        async with httpx.AsyncClient(base_url=f"{self.site}/api/v2/", timeout=HANG_SECONDS) as client:
            client.headers["Authorization"] = f"Bearer {self.token}"
            turn = 0
            while not until.is_set():
                began = time.monotonic()
                answer = await client.get(paths[turn % len(paths)])
                self.seconds.append(time.monotonic() - began)
                self.faults[str(answer.status_code)] += answer.status_code != 200
                turn += 1
                await asyncio.sleep(PAUSE_SECONDS)


def make_people(site: str) -> list[Person]:
    rows = Permission.objects.select_related("content_type")
    may = [row for row in rows if f"{row.content_type.app_label}.{row.codename}" in list_role_permissions("viewer")]
    people = []
    for number in range(PEOPLE):
        user = User.objects.create_user(f"watcher {number}", is_staff=True)
        user.user_permissions.set(may)
        people.append(Person(site, issue_token(user, name="load")[1]))
    return people


async def crowd(people: list[Person], created: list[Benchmark], start: Callable[[], Any]) -> None:
    """Let everybody watch, and ask, until all operations have ended for all who watch."""
    over = asyncio.Event()
    polling = [
        asyncio.create_task(person.poll(created[index % len(created)], over)) for index, person in enumerate(people)
    ]
    watching = [
        asyncio.create_task(person.watch(str(created[(position + socket) % len(created)].operation_id)))
        for position, person in enumerate(people)
        for socket in range(SOCKETS)
    ]
    await asyncio.to_thread(start)
    async with asyncio.timeout(5 * HANG_SECONDS):
        await asyncio.gather(*watching)
    over.set()
    await asyncio.gather(*polling)


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def left_when_the_first_ended(operations: list[Operation]) -> list[float]:
    """Return, of each operation but the first to end, the share of its work that was done at that moment."""
    for operation in operations:
        operation.refresh_from_db()
    first = min(operations, key=lambda operation: operation.finished_at or operation.created_at)
    shares = []
    for operation in operations:
        finished = operation.batches.filter(
            finished_at__lte=first.finished_at, payload__query_ids__isnull=False
        ).count()
        shares.append(finished / max(operation.batches.filter(payload__query_ids__isnull=False).count(), 1))
    return sorted(shares)


@pytest.mark.long
def test_concurrent_users_are_neither_refused_nor_delayed(crew, serve, proxy, processes):
    mapping = make_library(queries=QUERIES, documents=30)
    created = [create_benchmark(mapping, name=f"load of {name}", matrix=MATRIX) for name in OWNERS]
    sites = [serve(), serve()]
    servers = [process.pid for process in processes]
    people = make_people(proxy(*sites))
    operations = [launch(one, by=User.objects.create(username=name)) for one, name in zip(created, OWNERS, strict=True)]
    before = [resident_mb(pid) for pid in servers]
    began = time.monotonic()
    asyncio.run(crowd(people, created, lambda: [crew.start() for _ in range(2)]))
    crew.slowest = time.monotonic() - began
    assert crew.slowest < crew.limit
    seconds = sorted(second for person in people for second in person.seconds)
    print(f"{len(seconds):,} requests, median {median(seconds):.2f} s, the slowest {seconds[-1]:.1f} s")
    assert not sum((person.faults for person in people), Counter())
    assert sum(person.ends for person in people) == PEOPLE * SOCKETS
    assert max(resident_mb(pid) - old for pid, old in zip(servers, before, strict=True)) < GROWTH_MB
    keys = [run_key(Benchmark.objects.get(pk=benchmark.pk)) for benchmark in created]
    assert keys[0] == keys[1] == keys[2]
    shares = left_when_the_first_ended(operations)
    print("done when the first ended:", ", ".join(f"{share:.0%}" for share in shares))
    assert shares[0] > 0.5
