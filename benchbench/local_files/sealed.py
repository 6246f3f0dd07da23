"""Arrays in files of this machine: sealed when they are written, checked when they are opened, mapped read-only.

A file is the bytes of the array, row by row, and then its seal, a line of JSON: type, shape, a name of the content, and
the CRC-32 of the bytes. A file is rejected if its seal differs from the seal that the reader computes. The checksum is
the standard library's fastest: 1.5 GB take about a second, with SHA-256 ten.
"""

import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchbench.local_files.placing import OutputError, make_folder, write_file
from benchbench.process import process

log = logging.getLogger(__name__)

SEAL_BYTES = 256
BLOCK_BYTES = 2**20  # small enough that a block is still in the processor's cache when its checksum is computed
LEFT_SECONDS = 3600

Identity = tuple[int, ...]


class CheckedFile(NamedTuple):
    """Identity and content of a checked file."""

    identity: Identity
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    holds: str


_checked_files: dict[Path, CheckedFile] = {}  # the files that this process has checked, so that it reads each once
process.add(_checked_files.clear)


def load_array(
    file: Path,
    dtype: type[np.generic],
    shape: tuple[int, ...],
    *,
    holds: str,
    make: Callable[[], Iterable[NDArray[Any]]],
) -> NDArray[Any]:
    """Return the array of `file`, mapped read-only: processes share its pages.

    If the file is missing, or was not written for `holds` (at most 64 characters), `make` yields the rows in parts and
    the file is written. The first length of `shape` may be -1, for any. Each process reads the whole file once, and
    again only after it was written. Raises OutputError, and the errors of `make`.
    """
    array = _open_array(file, np.dtype(dtype), shape, holds)
    if array is None:
        make_folder(file.parent)
        _tidy(file)
        write_file(lambda out: _write(out, make(), np.dtype(dtype), shape, holds), file, force=True)
        array = _open_array(file, np.dtype(dtype), shape, holds)
    if array is None:
        raise OutputError(f"{file} was not written correctly: check the disk, or name another folder.")
    return array


def find_identity(file: Path) -> Identity:
    """Return the identity of the file that `load_array` last mapped for this process, for `is_unchanged`."""
    return _checked_files[file].identity


def is_unchanged(file: Path, identity: Identity) -> bool:
    """Return whether a file is unchanged since it was checked as `identity`."""
    try:
        return build_identity(os.stat(file)) == identity
    except FileNotFoundError:
        return False


def _tidy(file: Path) -> None:
    """Delete the remains of a process killed while it wrote `file`: temporary files unchanged for an hour."""
    for leftover in file.parent.glob(f".{file.name}.*"):
        with suppress(FileNotFoundError):
            if leftover.stat().st_mtime < time.time() - LEFT_SECONDS:
                leftover.unlink()


def _open_array(file: Path, dtype: np.dtype[Any], shape: tuple[int, ...], holds: str) -> NDArray[Any] | None:
    """Return the mapped array; None if the file is missing or invalid."""
    try:
        with file.open("rb", buffering=0) as opened:
            status = os.fstat(opened.fileno())
            size = status.st_size - SEAL_BYTES
            rows = size // (dtype.itemsize * int(np.prod(shape[1:]))) if shape[0] < 0 else shape[0]
            dims = (rows, *shape[1:])
            expected = CheckedFile(build_identity(status), dtype, dims, holds)
            if _checked_files.get(file) != expected:
                if size != dtype.itemsize * int(np.prod(dims)) or not _is_sealed(opened, size, dtype, dims, holds):
                    log.warning("%s is damaged or has other contents: it is written again.", file)
                    return None
                _checked_files[file] = expected
            return np.asarray(np.memmap(opened, dtype, "r", shape=dims))
    except FileNotFoundError:
        return None


def build_identity(status: os.stat_result) -> Identity:
    """Return values that change whenever a file is written or replaced: its time of change cannot be set."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_sealed(opened: IO[bytes], size: int, dtype: np.dtype[Any], shape: tuple[int, ...], holds: str) -> bool:
    """Return whether the seal matches the file's bytes.

    They are read, not mapped: a bad sector raises an error then, instead of killing the process.
    """
    checksum = 0
    block = memoryview(bytearray(BLOCK_BYTES))
    try:
        for start in range(0, size, BLOCK_BYTES):
            buffer = block[: min(BLOCK_BYTES, size - start)]
            if opened.readinto(buffer) != len(buffer):  # type: ignore[attr-defined]
                return False
            checksum = zlib.crc32(buffer, checksum)
        return opened.read(SEAL_BYTES) == _seal(dtype, shape, holds, checksum)
    except OSError:
        return False


def _write(
    out: IO[bytes], blocks: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...], holds: str
) -> None:
    checksum = rows = 0
    for block in blocks:
        content = np.ascontiguousarray(block, dtype).tobytes()
        out.write(content)
        checksum = zlib.crc32(content, checksum)
        rows += len(block)
    out.write(_seal(dtype, (rows, *shape[1:]), holds, checksum))


def _seal(dtype: np.dtype[Any], shape: tuple[int, ...], holds: str, checksum: int) -> bytes:
    header = {"type": dtype.str, "shape": shape, "holds": holds, "crc32": f"{checksum:08x}"}
    return json.dumps(header).encode().ljust(SEAL_BYTES - 1) + b"\n"
