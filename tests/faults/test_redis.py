"""Redis killed or frozen for seconds: workers wait and continue."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchbench.embedded.service import find_program
from tests.faults.kit import make_nursery, scenarios, survive, until

STATED_SECONDS = 8
AWAY_SECONDS = 2.0
POINTS = """
    benchmark: claimed, searched, commit stored, finishing
    isolated: searched
    index: chunked
    resolve: stored
"""
AWAY = scenarios("kill Redis", POINTS, alone=True)
FROZEN = [one for one in scenarios("freeze Redis", POINTS, alone=True) if one.point.endswith("stored")]


class Server:
    """A Redis of these tests' own, which only their workers use."""

    def __init__(self, folder: Path, *, retains: bool) -> None:
        self.path = folder / "redis"
        saved = ("--appendonly", "yes", "--appendfsync", "always") if retains else ("--appendonly", "no")
        position = ("--port", "0", "--unixsocket", str(self.path), "--dir", str(folder))
        self.command = [str(find_program()), "--save", "", *position, *saved]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        until(self.path.exists, "Redis")

    def come_back(self) -> None:
        """Be away for some seconds, and then there again."""
        assert self.process
        self.process.wait()
        time.sleep(AWAY_SECONDS)
        self.start()

    def wake(self) -> None:
        """Freeze for some seconds, and then go on."""
        assert self.process
        time.sleep(AWAY_SECONDS)
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module", params=[False, True], ids=["empty", "with its data"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with TemporaryDirectory() as folder:
        server = Server(Path(folder), retains=request.param)
        yield server
        server.kill()


@pytest.fixture(scope="module")
def nursery(django_db_setup: None, server: Server) -> Iterator["subprocess.Popen[bytes]"]:
    """Of workers that use the server. The test does not: their sweep puts its batches on their queues."""
    with make_nursery(REDIS_URL=f"unix://{server.path}") as process:
        yield process


@pytest.fixture
def redis_of_workers(server: Server) -> Iterator[Server]:
    server.start()
    yield server
    server.kill()


@pytest.mark.parametrize("scenario", AWAY, ids=str)
def test_a_worker_waits_for_a_killed_redis(redis_of_workers, crew, scenario):
    survive(crew, scenario, redis_of_workers.come_back)


@pytest.mark.parametrize("scenario", FROZEN, ids=str)
def test_a_worker_waits_for_a_frozen_redis(redis_of_workers, crew, scenario):
    survive(crew, scenario, redis_of_workers.wake)
