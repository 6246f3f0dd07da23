"""Scratch folders: they go at the end of a block, and, where their process is killed, when the next one is made."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "benchbench-scratch-"
YOUNG_SECONDS = 60  # one that was made just now may not be locked yet


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give an empty folder among the temporary files of this machine while the block runs.

    Its lock is the kernel's, which ends with the process, however that ends. Folders that nobody holds are removed
    first: kill -9 leaves files for as long as nobody needs such a folder again, and no longer.
    """
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        held = _lock(Path(folder))
        try:
            yield Path(folder)
        finally:
            if held is not None:
                os.close(held)


def _sweep(among: Path) -> None:
    for folder in among.glob(f"{PREFIX}*"):
        held = _lock(folder)
        if held is None:
            continue
        try:
            if os.fstat(held).st_mtime < time.time() - YOUNG_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(held)


def _lock(folder: Path) -> int | None:
    """Lock a folder and return its descriptor, or None where somebody holds it, or it is gone or another user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
