"""Sharing of collections between the processes of a machine: who has one open, who died with it, who fills one.

A process that has a collection open keeps a file, its mark, locked. The kernel takes the lock from a dead process,
however it died, and nothing removes its mark: a mark that is not locked tells of a process that died with the
collection open.
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

MARK = "open."  # the name of a mark begins so; the name of the folder and some letters follow
OWN = "own."  # likewise that of a folder of one process alone
LEFT_SECONDS = 3600
WAIT_SECONDS = 60.0  # for another process that fills; a frozen one delays others no longer


@contextmanager
def open_mark(folder: Path) -> Iterator[None]:
    """Mark a folder as open to this process during the block."""
    descriptor, mark = tempfile.mkstemp(dir=folder.parent, prefix=f"{MARK}{folder.name}.")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        Path(mark).unlink(missing_ok=True)  # while it is locked: an unlocked mark is that of a dead process
        os.close(descriptor)


def is_open(folder: Path) -> bool:
    """Return whether a living process has a folder open."""
    return any(_is_locked(mark) for mark in _marks(folder))


def marks_of_dead(folder: Path) -> list[Path]:
    """Return the marks of processes that died while they had a folder open."""
    return [mark for mark in _marks(folder) if _is_left(mark)]


@contextmanager
def own_folder(folder: Path) -> Iterator[Path]:
    """Give the path, not yet there, of a folder for this process alone, deleted after the block.

    Where the process is killed, the next `tidy` deletes it.
    """
    own = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{OWN}{folder.name}."))
    lock = os.open(own, os.O_RDONLY)
    try:
        try_lock(lock)
        yield own / folder.name
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(lock)


@contextmanager
def filling_lock(folder: Path) -> Iterator[bool]:
    """Let one process at a time open and fill the collections in a folder; a killed one gives the lock back.

    Gives False, without the lock, where another has had it for WAIT_SECONDS.
    """
    lock, until = os.open(folder / "lock", os.O_RDONLY | os.O_CREAT, 0o666), time.monotonic() + WAIT_SECONDS
    try:
        while not (alone := try_lock(lock)) and time.monotonic() < until:
            time.sleep(0.1)
        yield alone
    finally:
        os.close(lock)


def tidy(folder: Path) -> None:
    """Delete what killed processes have left: part of a filling of `folder`, or folders of their own."""
    for left in (*folder.parent.glob(f".{folder.name}.*"), *folder.parent.glob(f"{OWN}{folder.name}.*")):
        with suppress(FileNotFoundError):  # its process deleted it meanwhile
            if left.stat().st_mtime < time.time() - LEFT_SECONDS and not _is_locked(left):
                shutil.rmtree(left, ignore_errors=True)


def _marks(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f"{MARK}{folder.name}.*"))


def _is_locked(path: Path) -> bool:
    """Return whether a process has locked a file or folder; False where it is gone."""
    with _descriptor(path) as descriptor:
        return descriptor is not None and not try_lock(descriptor)


def _is_left(mark: Path) -> bool:
    """Return whether a mark has outlived its process. One that was deleted after it was listed has not."""
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
