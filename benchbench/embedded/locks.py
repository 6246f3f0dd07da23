"""Locks that the kernel releases whenever and however their holder ends.

A lock belongs to an open file, not to a process. A forked child shares its parent's lock. A server that inherits the
descriptor holds the lock as long as it, or any child of it, lives. Process ids in files are not used: after a crash, a
reboot or in a container such an id may belong to another process.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lock_shared(path: Path) -> int:
    """Wait for a shared lock on `path` and return its descriptor. Closing it, or exiting, releases the lock."""
    return _lock(path, fcntl.LOCK_SH)


def lock_exclusive(path: Path) -> int:
    """Wait until `path` is free, lock it and return the descriptor."""
    return _lock(path, fcntl.LOCK_EX)


def try_exclusive(path: Path) -> int | None:
    """Lock `path` and return the descriptor, or None at once if a process holds it."""
    try:
        return _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None


@contextmanager
def holding(descriptor: int) -> Iterator[int]:
    """Release the lock at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether a process holds `path`. A lock that was never taken, or was removed, is not held."""
    if not path.exists():
        return False
    descriptor = try_exclusive(path)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None


def _lock(path: Path, operation: int) -> int:
    # Python opens files close-on-exec: a started program gets the lock only if the descriptor is passed to it.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, operation)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
