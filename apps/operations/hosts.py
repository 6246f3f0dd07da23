"""Locks of a host that keep it quiet while something is timed on it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

WAIT_SECONDS = 0.2
LOCKS, STOPPED = Path("/proc/locks"), "T"  # Linux's list of locks with their processes, and the state of one


@contextmanager
def share_of_host(*, alone: bool, wait: Callable[[float], None]) -> Iterator[None]:
    """Hold the host for a batch: together with others, or `alone`. `wait(seconds)` is called until it is free.

    Whoever wants it passes a turnstile first, one at a time, so that a batch that must be alone is not kept waiting for
    ever by others that come and go. Both are locks on files, which a killed process gives back. The file that only
    stopped processes hold is replaced, for they do nothing: one that wakes finds its lease lost.
    """
    turnstile = _take("turnstile", fcntl.LOCK_EX, wait)
    try:
        host = _take("host", fcntl.LOCK_EX if alone else fcntl.LOCK_SH, wait)
    finally:
        os.close(turnstile)
    try:
        yield
    finally:
        os.close(host)


def _take(name: str, mode: int, wait: Callable[[float], None]) -> int:
    """Return an open file that this process has locked; to close it gives the lock back."""
    while True:
        lock = _open(name)
        held = _locked(lock, mode)
        if held and _is_the_one(name, lock):
            return lock
        if not held and _holders_stand_still(lock):
            _replace(name, lock)
        os.close(lock)
        if not held:
            wait(WAIT_SECONDS)


def _locked(lock: int, mode: int) -> bool:
    try:
        fcntl.flock(lock, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holders_stand_still(lock: int) -> bool:
    """Tell whether all processes that hold a lock are stopped; of those in other containers that cannot be seen."""
    inode = f":{os.fstat(lock).st_ino}"
    with suppress(OSError):
        lines = [line.split() for line in LOCKS.read_text().splitlines()]
        holders = [pid for _, kind, _, _, pid, file, *_ in lines if kind == "FLOCK" and file.endswith(inode)]
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in holders]
        return bool(states) and set(states) == {STOPPED}
    return False


def _replace(name: str, lock: int) -> None:
    """Let others have a new file, unless there is one already; one process at a time does this."""
    replacing = _open("replacing")
    try:
        if _locked(replacing, fcntl.LOCK_EX) and _is_the_one(name, lock):
            with suppress(OSError):  # somebody else's, in a folder where everybody deletes their own alone
                _path(name).unlink()
    finally:
        os.close(replacing)


def _is_the_one(name: str, lock: int) -> bool:
    """Tell whether an open file is still what everybody opens."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), _path(name).stat())
    return False


def _path(name: str) -> Path:
    return Path(settings.BENCHBENCH_LOCK_DIR) / f"benchbench-{name}.lock"


def _open(name: str) -> int:
    """Open a lock that all checkouts and users of this host share; reading it suffices to lock it."""
    try:
        return os.open(_path(name), os.O_RDONLY)
    except FileNotFoundError:
        return os.open(_path(name), os.O_RDONLY | os.O_CREAT, 0o644)
