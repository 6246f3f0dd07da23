"""Sharing of collections between processes of a machine: marks of open collections, and locks for filling.

A process with an open collection holds a lock on a file, its mark. The kernel releases the lock of a dead process but
leaves the mark. So an unlocked mark means that a process died while it had the collection open.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchbench.local_files.placing import try_lock

MARK = "open."  # prefix of marks; the folder's name and random letters follow
OWN_PREFIX = "own."  # prefix of folders used by one process only
LEFT_SECONDS = 3600
WAIT_SECONDS = 60.0  # for another process that fills; limits the delay by a frozen one


@contextmanager
def open_mark(folder: Path) -> Iterator[None]:
    """Mark a folder as open in this process during the block."""
    descriptor, mark = tempfile.mkstemp(dir=folder.parent, prefix=f"{MARK}{folder.name}.")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        Path(mark).unlink(missing_ok=True)  # while locked, since an unlocked mark means a dead process
        os.close(descriptor)


def is_open(folder: Path) -> bool:
    """Return whether a living process has a folder open."""
    return any(_is_locked(mark) for mark in _list_marks(folder))


def find_dead_marks(folder: Path) -> list[Path]:
    """Return the marks of processes that died while they had a folder open."""
    return [mark for mark in _list_marks(folder) if _is_orphaned(mark)]


@contextmanager
def own_folder(folder: Path) -> Iterator[Path]:
    """Yield the path of a folder, not yet created, for this process only. Delete it after the block.

    If the process is killed, a later `tidy` deletes it.
    """
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{OWN_PREFIX}{folder.name}."))
    lock = os.open(temporary, os.O_RDONLY)
    try:
        try_lock(lock)
        yield temporary / folder.name
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(lock)


@contextmanager
def filling_lock(folder: Path) -> Iterator[bool]:
    """Lock a folder, so that one process at a time opens and fills its collections. Killed processes release it.

    Yields whether this process has the lock: False if another held it for WAIT_SECONDS.
    """
    lock, until = os.open(folder / "lock", os.O_RDONLY | os.O_CREAT, 0o666), time.monotonic() + WAIT_SECONDS
    try:
        while not (alone := try_lock(lock)) and time.monotonic() < until:
            time.sleep(0.1)
        yield alone
    finally:
        os.close(lock)


def tidy(folder: Path) -> None:
    """Delete leftovers of killed processes: partly filled copies of `folder`, and their own folders."""
    for leftover in (*folder.parent.glob(f".{folder.name}.*"), *folder.parent.glob(f"{OWN_PREFIX}{folder.name}.*")):
        with suppress(FileNotFoundError):  # its process deleted it meanwhile
            if leftover.stat().st_mtime < time.time() - LEFT_SECONDS and not _is_locked(leftover):
                shutil.rmtree(leftover, ignore_errors=True)


def _list_marks(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f"{MARK}{folder.name}.*"))


def _is_locked(path: Path) -> bool:
    """Return whether a process has locked a file or folder. False if it is missing."""
    with _descriptor(path) as descriptor:
        return descriptor is not None and not try_lock(descriptor)


def _is_orphaned(mark: Path) -> bool:
    """Return whether a mark has outlived its process. False if it was deleted after it was listed."""
    with _descriptor(mark) as descriptor:
        return descriptor is not None and try_lock(descriptor) and os.fstat(descriptor).st_nlink > 0


@contextmanager
def _descriptor(path: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
