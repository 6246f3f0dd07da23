"""Atomic writing of files: each appears when it is complete, or not at all."""

import fcntl
import gzip
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

from benchbench.errors import BenchbenchError

Piece = str | bytes
Files = Mapping[str, Iterable[Piece]]
ZIP_DATE = (1980, 1, 1, 0, 0, 0)  # the oldest date of the zip format; a fixed date makes equal content equal bytes


class OutputError(BenchbenchError):
    """A file cannot be written."""

    code = "output"


def write_pieces(pieces: Iterable[Piece], file: IO[bytes] | gzip.GzipFile) -> None:
    """Write texts as UTF-8, and bytes unchanged."""
    for piece in pieces:
        file.write(piece.encode() if isinstance(piece, str) else piece)


def write_zip(files: Files, file: IO[bytes]) -> None:
    """Write a zip of files by their names in the archive; equal files make equal bytes."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, pieces in files.items():
            member = zipfile.ZipInfo(name, ZIP_DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w", force_zip64=True) as packed:
                write_pieces(pieces, packed)


def write_file_pieces(pieces: Iterable[Piece], path: Path, *, force: bool | None = None) -> None:
    """Write `pieces` to the file `path`, compressed if its name ends in .gz; see `write_file`."""

    def write(file: IO[bytes]) -> None:
        if path.suffix != ".gz":
            write_pieces(pieces, file)
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            write_pieces(pieces, packed)

    write_file(write, path, force=force)


def write_file(write: Callable[[IO[bytes]], None], path: Path, *, force: bool | None = None, mode: int = 0o666) -> None:
    """Let `write` fill a file that then appears as `path`, with `mode` less the umask. If `write` raises, none appears.

    The file gets its name once its content is on the disk: a power cut leaves the new file or the old one. An existing
    file is replaced only with `force`; None means that the user cannot ask for that. Raises OutputError.
    """
    if path.exists() and not force:
        _refuse(path, force)
    with _convert_errors(path, force):
        temporary = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
    try:
        with _convert_errors(path, force):
            with temporary:
                write(temporary)
                temporary.flush()
                os.fsync(temporary.fileno())
            os.chmod(temporary.name, mode & ~_read_umask())
            (os.replace if force else os.link)(temporary.name, path)
            sync_path(path.parent)
    finally:
        Path(temporary.name).unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make the folder `path` and its parents if they are missing. Raises OutputError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder {path} cannot be created: {error.strerror or error}.") from None


def write_directory(files: Files, path: Path) -> None:
    """Write files under their relative names into a directory that then appears as `path`, or does not appear at all.

    An existing directory is never replaced: another export may have files that this one lacks. Raises OutputError.
    """
    if path.exists():
        raise OutputError(f"{path} exists already: choose another name, or remove it first.")
    with _convert_errors(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        for name, pieces in files.items():
            file = temporary / name
            file.parent.mkdir(exist_ok=True)
            with file.open("wb") as out:
                write_pieces(pieces, out)
        with _convert_errors(path):
            temporary.chmod(0o777 & ~_read_umask())
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _convert_errors(path: Path, force: bool | None = None) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        _refuse(path, force)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.") from None


def _refuse(path: Path, force: bool | None) -> NoReturn:
    remedy = "remove it first" if force is None else "give --force to replace it"
    raise OutputError(f"{path} exists already: choose another name, or {remedy}.")


def sync_path(path: Path) -> None:
    """Flush the content of a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_umask() -> int:
    """Return the umask, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


PREFIX = "benchbench-scratch-"
YOUNG_SECONDS = 60  # a newer folder may not be locked yet


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty temporary folder that exists while the block runs.

    The kernel releases its lock when the process ends, however that happens. Folders without a holder are removed
    first, so the files of a process ended by kill -9 stay only until the next call. Errors of the block do not name it.
    """
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        descriptor = _lock(Path(folder))
        try:
            yield Path(folder)
        except BenchbenchError as error:  # the sender of a file does not know the folder that it lies in
            error.message = error.message.replace(f"{folder}/", "").replace(folder, "The upload")
            error.args = (error.message,)
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        descriptor = _lock(folder)
        if descriptor is None:
            continue
        try:
            if os.fstat(descriptor).st_mtime < time.time() - YOUNG_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def _lock(folder: Path) -> int | None:
    """Lock a folder and return its descriptor; None if it is locked, missing or another user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    with suppress(OSError):
        if try_lock(descriptor):
            return descriptor
    os.close(descriptor)
    return None


def try_lock(descriptor: int, mode: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file unless another process holds it; return whether it is locked."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
