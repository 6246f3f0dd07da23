"""Waiting for what happens elsewhere, however long a busy machine takes."""

import time
from collections.abc import Callable

HANG_SECONDS = 600.0  # which only a hang takes


def until(happened: Callable[[], object], subject: str = "", *, every: float = 0.02) -> None:
    """Return once `happened()` is true. Fail after HANG_SECONDS, naming what was waited for."""
    deadline = time.monotonic() + HANG_SECONDS
    while not happened():
        assert time.monotonic() < deadline, f"{subject or 'what a test waits for'}: not within {HANG_SECONDS:.0f} s"
        time.sleep(every)
