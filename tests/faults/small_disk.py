"""A small disk: `python -m tests.faults.small_disk FOLDER BYTES ARGUMENTS…` starts Python on it, as its own."""

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000


def mount(folder: Path, size: int) -> None:
    """Give this process, and those that it starts, a disk of so many bytes as a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    library = ctypes.CDLL(None, use_errno=True)
    for failed in (
        library.unshare(CLONE_NEWNS),
        library.mount(b"none", b"/", None, 0x4000 | 0x40000, None),  # nothing mounted here shows elsewhere
        library.mount(b"none", bytes(folder), b"tmpfs", 0, f"size={size}".encode()),
    ):
        if failed:
            raise OSError(ctypes.get_errno(), "This process may mount nothing")


def seen_by(process: int, folder: Path) -> Path:
    return Path(f"/proc/{process}/root{folder}")


if __name__ == "__main__":
    mount(Path(sys.argv[1]), int(sys.argv[2]))
    os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
