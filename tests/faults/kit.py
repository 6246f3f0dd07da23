"""The kit of the fault suite: workers that are broken on purpose, work for them, and figures that must not change.

A scenario is a kind of work and a fault (`planting.py`). Its module states how soon the work ends by itself.
`survive` runs one: a broken worker begins, and once the fault has happened a healthy one joins. Then holds: the
operation has ended, no batch counts twice, no row is lost, every figure is what an undisturbed run has, bit for bit.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from apps.operations.models import Operation
from apps.retrieval.models import CachedVector
from tests.faults.outages import THE_TEST
from tests.faults.planting import POINTS, Fault
from tests.faults.work import KINDS, Kind
from tests.services import environment_of_processes

HANG_SECONDS = 600  # which only a hang takes, however busy the machine is
BUSY = 10  # times as long as is stated, work may take on a machine that has much else to do
# Short, or each test would wait for leases to run out; and long enough for a thread of a busy machine to renew them.
SETTINGS = {
    "BENCHBENCH_LEASE_SECONDS": 4,
    "BENCHBENCH_SWEEP_SECONDS": 1,
    "BENCHBENCH_IDLE_TRANSACTION_SECONDS": 6,
    "BENCHBENCH_BATCH_SECONDS": 0.001,
}


def until(happened: Callable[[], Any], subject: str, *, within: float = HANG_SECONDS) -> float:
    started = time.monotonic()
    while not _answered(happened):
        assert time.monotonic() - started < within, f"{subject}: not within {within} s"
        time.sleep(0.05)
    return time.monotonic() - started


def _answered(ask: Callable[[], Any]) -> Any:
    """Ask, on a new connection next time where PostgreSQL is away just now: a fault says so before it happens."""
    try:
        return ask()
    except (OperationalError, InterfaceError):
        connection.close()
        return False


@dataclass(frozen=True)
class Worker:
    """A worker: the group of processes that it is, and the token of the fault that is planted in it."""

    pid: int
    token: str

    @property
    def is_there(self) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return True
        return False

    def wait_for_fault(self, call: int = 0) -> None:
        token = Path(f"{self.token}.{call}")
        until(lambda: token.exists() or not Path(f"/proc/{self.pid}").exists(), "the fault")
        assert token.exists(), "the worker ended before the fault"

    @property
    def is_frozen(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def wake(self) -> None:
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, subject: signal.Signals) -> None:
        for report in (os.kill, os.killpg):  # one that was started a moment ago leads no group yet
            with contextlib.suppress(ProcessLookupError):
                report(self.pid, subject)


@dataclass
class Crew:
    """Starts workers, on the database and Redis of the test."""

    nursery: "subprocess.Popen[bytes]"
    folder: Path
    family: str  # in the table
    expected_seconds: float  # seconds from a fault to the end of the work, on a machine that has nothing else to do
    workers: list[Worker] = field(default_factory=list)
    slowest: float = 0.0  # seconds that it took

    def start(
        self, point: str = "", action: str = "", *, calls: int = 1, about: str = "", queues: Any = (), **settings: Any
    ) -> Worker:
        """Start a worker; with a point and an action it is a broken one. `settings` are of it alone."""
        token = str(self.folder / f"fault-{len(self.workers)}")
        fault = asdict(Fault(point, action, token, calls, about)) if point else None
        self.workers.append(Worker(self.order(settings=SETTINGS | settings, queues=list(queues), fault=fault), token))
        return self.workers[-1]

    def start_broken(self, scenario: "Scenario", **settings: Any) -> Worker:
        of_fault = {"calls": scenario.calls, "about": scenario.about}
        worker = self.start(scenario.point, scenario.action, **of_fault, **scenario.settings, **settings)
        worker.wait_for_fault()
        return worker

    def order(self, **requested: Any) -> int:
        assert self.nursery.stdin
        assert self.nursery.stdout
        self.nursery.stdin.write(json.dumps(requested).encode() + b"\n")
        self.nursery.stdin.flush()
        return int(self.nursery.stdout.readline())

    @property
    def limit(self) -> float:
        """Within how many seconds work must have ended, however busy the machine is."""
        return self.expected_seconds * BUSY

    def sees_the_end_of(self, operation: Operation) -> float:

        def has_ended() -> bool:
            return not Operation.objects.get(pk=operation.pk).is_active

        return until(has_ended, f"the end of {operation}", within=self.limit)

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.kill()
        until(lambda: not any(worker.is_there for worker in self.workers), "the end of the workers")


@contextlib.contextmanager
def make_nursery(**more: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.nursery"],
        cwd=settings.BASE_DIR,
        env=environment_of_processes() | more,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    yield process
    process.kill()
    process.wait()


@dataclass(frozen=True)
class Scenario:
    """What is broken, and where."""

    kind: str
    point: str
    action: str
    calls: int = 1
    about: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    alone: bool = False  # no other worker joins

    def __str__(self) -> str:
        location = self.point if self.point.startswith(self.kind) else f"{self.kind} {self.point}"
        return f"{self.action} {location}" + (f" x{self.calls}" if self.calls > 1 else "")


def scenarios(action: str, table: str, **more: Any) -> list[Scenario]:
    """Return the scenarios of a table: in each line a kind of work, a colon, and stages with commas between them.

    A stage is a point of `POINTS`: of its name, of that of the kind, or of a benchmark.
    """
    hits = []
    for kind, _, stages in (line.strip().partition(": ") for line in table.strip().splitlines()):
        for stage in stages.split(", "):
            names = (stage, f"{kind}: {stage}", f"benchmark: {stage}")
            hits.append(Scenario(kind, next(name for name in names if name in POINTS), action, **more))
    return hits


def survive(crew: Crew, scenario: Scenario, meanwhile: Callable[[], None] = lambda: None) -> Operation:
    """Let a worker break during its work and another join, and hold what came of it; return the work.

    Where the scenario is `alone`, no other joins: the pool replaces the worker, or it goes on. `meanwhile` is called
    once the fault has happened.
    """
    kind = KINDS[scenario.kind]
    expected = undisturbed(kind)
    call_session()
    operation = kind.start()
    broken = crew.start_broken(scenario)
    happened = time.monotonic()
    meanwhile()
    if not scenario.alone:
        crew.start(**scenario.settings)
    crew.sees_the_end_of(operation)
    crew.slowest = time.monotonic() - happened
    hold(kind, operation, expected)
    if scenario.action == "freeze":
        let_wake(crew, broken)
        hold(kind, operation, expected)
    return operation


def call_session() -> None:
    """Name the session of the test, for faults of PostgreSQL to leave it alone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", [THE_TEST])


def let_wake(crew: Crew, frozen: Worker) -> None:
    """Wake a frozen worker, and see it go on: it has thrown its part away and does, alone, the next work."""
    for worker in crew.workers:
        if worker != frozen:
            worker.kill()
    frozen.wake()
    crew.sees_the_end_of(KINDS["resolve"].start())
    assert frozen.is_there


def hold(kind: Kind, operation: Operation, expected: Any) -> None:
    """Hold that an operation completed, that each part of it is done once, and that its figures are the expected."""
    operation.refresh_from_db()
    assert (operation.status, operation.error) == ("completed", "")
    assert set(operation.batches.values_list("state", flat=True)) == {"done"}
    units = sum(operation.batches.values_list("done_units", flat=True))
    assert units == sum(operation.batches.values_list("units", flat=True)) == operation.total_units
    assert kind.figures(operation) == expected


_UNDISTURBED: dict[str, Any] = {}


def undisturbed(kind: Kind) -> Any:
    """Return the figures of work that nothing disturbed, done in this process once."""
    if kind.name not in _UNDISTURBED:
        _UNDISTURBED[kind.name] = kind.figures(kind.do())
        CachedVector.objects.all().delete()  # or nothing would be encoded any more, and no store filled
        for folder in Path(settings.BENCHBENCH_VECTOR_DIR).glob("*.stores"):
            shutil.rmtree(folder)
    return _UNDISTURBED[kind.name]


def sessions(*states: str) -> set[int]:
    """Return the backend ids of the test database's other sessions: all of them, or those in one of the states."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND (state = ANY(%s) OR %s)",
            [list(states), not states],
        )
        return {pid for (pid,) in cursor.fetchall()}
