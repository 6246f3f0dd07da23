"""Locks of a host that keep it quiet while something is timed on it."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

WAIT_SECONDS = 0.2


@contextmanager
def share_of_host(*, alone: bool, wait: Callable[[float], None]) -> Iterator[None]:
    """Hold the host for a batch: together with others, or `alone`. `wait(seconds)` is called until it is free.

    Whoever wants it passes a turnstile first, one at a time, so that a batch that must be alone is not kept waiting for
    ever by others that come and go. Both are locks on files, which a killed process gives back.
    """
    turnstile, host = _open("turnstile"), _open("host")
    try:
        _take(turnstile, fcntl.LOCK_EX, wait)
        _take(host, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, wait)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
    finally:
        os.close(turnstile)
        os.close(host)


def _take(lock: int, mode: int, wait: Callable[[float], None]) -> None:
    while True:
        try:
            fcntl.flock(lock, mode | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            wait(WAIT_SECONDS)


def _open(name: str) -> int:
    """Open a lock that all checkouts and users of this host share; reading it suffices to lock it."""
    file = Path(settings.BENCHBENCH_LOCK_DIR) / f"benchbench-{name}.lock"
    try:
        return os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return os.open(file, os.O_RDONLY | os.O_CREAT, 0o644)
