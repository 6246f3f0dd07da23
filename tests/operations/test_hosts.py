import fcntl
import subprocess
import sys
import threading
import time

import pytest

from apps.operations.hosts import lock_host
from tests.waiting import HANG_SECONDS, until


def test_batches_share_a_host_unless_one_must_be_alone(tmp_path, settings):
    settings.BENCHBENCH_LOCK_DIR = tmp_path
    log: list[str] = []
    release = threading.Event()

    def hold(name: str, *, alone: bool = False) -> threading.Thread:
        def act() -> None:
            with lock_host(alone=alone, wait=lambda _: time.sleep(0.005)):
                log.append(f"{name} in")
                release.wait(HANG_SECONDS)
                log.append(f"{name} out")

        thread = threading.Thread(target=act)
        thread.start()
        return thread

    def someone_is_in_the_turnstile() -> bool:
        with (tmp_path / "benchbench-turnstile.lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    threads = [hold("a"), hold("b")]
    until(lambda: set(log) == {"a in", "b in"})  # together
    threads.append(hold("timed", alone=True))
    until(someone_is_in_the_turnstile)  # it waits there for a and b
    threads.append(hold("late"))  # and lets no one in before it
    release.set()
    for thread in threads:
        thread.join()
    assert set(log[2:4]) == {"a out", "b out"}
    assert log[4:] == ["timed in", "timed out", "late in", "late out"]


def give_up(_: float) -> None:
    raise TimeoutError


HOLD = """
import fcntl, os, signal, sys
lock = os.open(sys.argv[1], os.O_RDONLY | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.parametrize("name", ["host", "turnstile"])
def test_frozen_process_does_not_block_the_host(tmp_path, settings, name):
    settings.BENCHBENCH_LOCK_DIR = tmp_path
    command = [sys.executable, "-c", HOLD, str(tmp_path / f"benchbench-{name}.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as frozen:
        try:
            assert frozen.stdout
            assert frozen.stdout.readline() == b"held\n"
            waits: list[float] = []

            def wait(seconds: float) -> None:
                waits.append(seconds)
                assert len(waits) < 600
                time.sleep(0.05)

            with (
                lock_host(alone=True, wait=wait),
                pytest.raises(TimeoutError),
                lock_host(alone=False, wait=give_up),
            ):
                pytest.fail("whoever is alone is alone")
            assert waits
        finally:
            frozen.kill()
