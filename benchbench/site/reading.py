"""Reading of uploads in a process of its own, which is ended after a limit of seconds.

While Python parses, it serves no other request: a slow file would hold up the whole site. Small files are read at once,
because no reader takes long for them (tests/test_growth.py), and a process costs more.
"""

import gzip
import importlib
import multiprocessing
import os
import pickle
import resource
import shutil
import tempfile
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGXCPU
from typing import Any, TypeVar

import django
from django.apps import apps
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from benchbench.errors import BenchbenchError
from benchbench.local_files.placing import scratch_folder
from benchbench.markup import html_is_slow

T = TypeVar("T")
NAME_BYTES = 255
SMALL_BYTES = 2**18  # unpacked
SMALL_PACK = 2**14  # of a zip or a `.gz`, which unpack to a thousand times as much
HTML = (".html", ".htm")
# A server that forks a process for each file, since a new Python takes seconds to load the site, and a copy of a
# process with many threads may find their locks held.
FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(["benchbench.site.preloaded"])
LONGEST_FOLDER = 70  # of temporary files: the path of the server's socket may have 107 bytes


class SlowFileError(BenchbenchError):
    """Reading the file takes longer than the limit."""

    code = "slow_file"
    status = 413


class LostReaderError(BenchbenchError):
    """The process that read the file has ended early."""

    code = "busy"
    status = 503


def yield_read(
    read: Callable[..., Iterator[T]], path: Path, *args: Any, remedy: str, **options: Any
) -> Generator[T, None, None]:
    """Yield what the generator function `read` yields of a file, which another process reads unless it is small.

    Each piece is one message, so pieces should be of a limited size. The limit, BENCHBENCH_READING_SECONDS, counts the
    time that is waited for pieces. Raises the errors of `read`; SlowFileError, whose message ends with the `remedy`;
    and LostReaderError.
    """
    if is_small(path):
        yield from read(path, *args, **options)
        return
    seconds = settings.BENCHBENCH_READING_SECONDS
    context = _choose_context()
    receiver, sender = context.Pipe(duplex=False)
    call = (read.__module__, read.__qualname__, path, args, options)
    process = context.Process(target=_send, args=(sender, seconds, *call), daemon=True)
    process.start()
    sender.close()
    limit = f"{seconds} s to read, the limit of an upload (BENCHBENCH_READING_SECONDS)"
    too_slow = SlowFileError(f"{path.name} takes longer than {limit}. {remedy}")
    try:
        yield from _receive(receiver, seconds, too_slow)
    except EOFError:
        process.join()
        if process.exitcode == -SIGXCPU:
            raise too_slow from None
        raise LostReaderError(
            f"The process that read {path.name} has ended early; the machine may be short of memory. Try again, or "
            f"with less. {remedy}"
        ) from None
    finally:
        process.kill()
        process.join()
        process.close()
        receiver.close()


def is_small(path: Path) -> bool:
    """Return whether a file, or all in a folder, is read in no time. Nothing of it is parsed for that."""
    if path.is_dir():
        files = list(path.iterdir())
        return sum(file.stat().st_size for file in files) <= SMALL_BYTES and all(map(is_small, files))
    size = path.stat().st_size
    if path.suffix not in (".zip", ".gz"):
        return size <= SMALL_BYTES
    if size > SMALL_PACK:
        return False
    with suppress(OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError):
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return len(file.read(SMALL_BYTES + 1)) <= SMALL_BYTES
        with zipfile.ZipFile(path) as archive:
            members = [(member.filename.lower(), member.file_size) for member in archive.infolist()]
        slow = (".gz", *HTML) if html_is_slow() else (".gz",)
        return sum(size for _, size in members) <= SMALL_BYTES and not any(name.endswith(slow) for name, _ in members)
    return True  # it is damaged, which its reader says


def _choose_context() -> Any:
    """Return the context of the fork server, or of new processes where the folder is too deep for its socket."""
    is_short = len(os.fsencode(tempfile.gettempdir())) <= LONGEST_FOLDER
    return FORK_SERVER if is_short else multiprocessing.get_context("spawn")


def cut_batches(
    items: Iterable[T], *, max_weight: int, weigh: Callable[[T], int] = lambda item: 1
) -> Iterator[list[T]]:
    """Yield items in lists whose weights sum to at most `max_weight`, or of one item."""
    batch: list[T] = []
    weight = 0
    for item in items:
        if batch and weight + weigh(item) > max_weight:
            yield batch
            batch, weight = [], 0
        batch.append(item)
        weight += weigh(item)
    if batch:
        yield batch


def _receive(receiver: Connection, seconds: float, too_slow: SlowFileError) -> Iterator[Any]:
    """Yield the pieces that the other process sends. Raises its error, and EOFError if it ends without a last word."""
    left = seconds
    while True:
        begun = time.monotonic()
        if not receiver.poll(max(left, 0)):
            raise too_slow
        is_piece, content = receiver.recv()
        left -= time.monotonic() - begun
        if is_piece:
            yield content
        elif content is None:
            return
        else:
            raise content


def _send(
    sender: Connection,
    seconds: int,
    module: str,
    name: str,
    path: Path,
    args: tuple[object, ...],
    options: Mapping[str, object],
) -> None:
    """Read a file and send what is yielded: (True, piece), and at the end (False, error or None)."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 2))  # if the process that waits was killed
    if not apps.ready:
        django.setup()
    with suppress(BrokenPipeError):  # the process that waited has gone on
        try:
            for piece in getattr(importlib.import_module(module), name)(path, *args, **options):
                sender.send((True, piece))
        except Exception as error:
            sender.send((False, _describe(error)))
        else:
            sender.send((False, None))


def _describe(error: Exception) -> Exception:
    """Return an error as it can be sent; an unexpected one says where it arose."""
    if not isinstance(error, BenchbenchError):
        error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # nosec # our own
    except Exception:
        return RuntimeError(traceback.format_exc())
    return error


@contextmanager
def stored(upload: UploadedFile) -> Iterator[Path]:
    """Store an uploaded file under its own name while the block runs, for readers that take paths."""
    with scratch_folder() as folder:
        yield store(upload, folder)


def store(upload: UploadedFile, folder: Path) -> Path:
    """Store an uploaded file in a folder under its name, whose end stays if it is too long, and return its path."""
    path = folder / (upload.name or "upload").encode()[-NAME_BYTES:].decode(errors="ignore")
    upload.seek(0)  # it may have been read before
    with path.open("wb") as file:
        shutil.copyfileobj(upload, file)
    return path
