"""Locks that keep a host idle while runs are timed on it, and notes on their holders for batches that wait."""

import fcntl
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings

from benchbench.local_files.placing import try_lock

log = logging.getLogger(__name__)
WAIT_SECONDS = 0.2
PREFIX = "benchbench-holder-"  # of the file names of notes
LONGEST = 200  # characters of a text in a note, which another site may have written
LOCKS, STOPPED = Path("/proc/locks"), "T"  # Linux's list of locks, and the state of a stopped process


@contextmanager
def lock_host(*, alone: bool, wait: Callable[[float], None]) -> Iterator[None]:
    """Hold the host for a batch, shared or `alone`. Calls `wait(seconds)` until it is free.

    Batches pass a turnstile one at a time, so that those sharing the host cannot starve one that must be alone. Both
    are file locks, which the kernel releases when a process is killed. A lock file held only by stopped processes is
    replaced: they do no work, and find their leases lost when they resume.
    """
    turnstile = _lock_file("turnstile", fcntl.LOCK_EX, wait)
    try:
        host = _lock_file("host", fcntl.LOCK_EX if alone else fcntl.LOCK_SH, wait)
    finally:
        os.close(turnstile)
    try:
        yield
    finally:
        os.close(host)


def _lock_file(name: str, mode: int, wait: Callable[[float], None]) -> int:
    """Return the descriptor of a file locked by this process. Closing it releases the lock."""
    while True:
        lock = _open(name)
        is_locked = try_lock(lock, mode)
        if is_locked and _is_current_file(name, lock):
            return lock
        if not is_locked and _are_holders_stopped(lock):
            _replace(name, lock)
        os.close(lock)
        if not is_locked:
            wait(WAIT_SECONDS)


def _are_holders_stopped(lock: int) -> bool:
    """Return whether all holders of a lock are stopped. False if they are in other containers, and so invisible."""
    inode = f":{os.fstat(lock).st_ino}"
    with suppress(OSError):
        lines = [line.split() for line in LOCKS.read_text(encoding="ascii").splitlines()]
        holders = [pid for _, kind, _, _, pid, file, *_ in lines if kind == "FLOCK" and file.endswith(inode)]
        stats = [Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace") for pid in holders]
        states = [stat.rpartition(")")[2].split()[0] for stat in stats]
        return bool(states) and set(states) == {STOPPED}
    return False


def _replace(name: str, lock: int) -> None:
    """Delete a lock file so that others create a new one, unless replaced already. One process at a time does this."""
    replacing = _open("replacing")
    try:
        if try_lock(replacing, fcntl.LOCK_EX) and _is_current_file(name, lock):
            with suppress(OSError):  # another user's file in a folder with the sticky bit
                _locate_lock(name).unlink()
    finally:
        os.close(replacing)


def _is_current_file(name: str, lock: int) -> bool:
    """Return whether the open file is still the file at its path."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), _locate_lock(name).stat())
    return False


def _locate_lock(name: str) -> Path:
    return Path(settings.BENCHBENCH_LOCK_DIR) / f"benchbench-{name}.lock"


def _open(name: str) -> int:
    """Open a lock file shared by all checkouts and users of this host. Locking needs only read permission."""
    try:
        return os.open(_locate_lock(name), os.O_RDONLY)
    except FileNotFoundError:
        return os.open(_locate_lock(name), os.O_RDONLY | os.O_CREAT, 0o644)


@dataclass(frozen=True, slots=True)
class Holder:
    """A batch that holds the host: site, kind and id of the operation, process id, start (ISO 8601)."""

    site: str
    kind: str
    operation: str
    process: int
    since: str
    alone: bool


def name_site() -> str:
    """Return a name that distinguishes this site on its host: the name of its server and of its database."""
    host_name = next((host for host in settings.ALLOWED_HOSTS if host not in ("*", "")), "localhost")
    return f"{host_name} (database {settings.DATABASES['default']['NAME']})"


@contextmanager
def note_holder(holder: Holder) -> Iterator[None]:
    """Leave a note for others while this block holds the host.

    The note is a file locked by this process. The note of a killed process is no longer locked, so it is not read as
    that of a holder.
    """
    folder, name = Path(settings.BENCHBENCH_LOCK_DIR), f"{uuid.uuid4().hex}.json"
    temporary, path = folder / f".{PREFIX}{name}", folder / f"{PREFIX}{name}"
    try:
        file = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        log.warning("Other processes cannot see which work holds this host: %s", error)
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, json.dumps(asdict(holder)).encode())
        temporary.rename(path)  # locked, so that other processes keep it
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)


def list_holders() -> list[Holder]:
    """Return the current holders of the host, one that is alone first. Delete the notes of ended processes."""
    notes = [_read(path) for path in Path(settings.BENCHBENCH_LOCK_DIR).glob(f"{PREFIX}*.json")]
    return sorted(filter(None, notes), key=lambda holder: (not holder.alone, holder.since))


def _read(path: Path) -> Holder | None:
    """Return the holder named in a note; None if it has ended or is stopped, or the note is unreadable."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with suppress(OSError):  # another user's file, or deleted
                path.unlink()
            return None
        if _are_holders_stopped(file):
            return None
        return _parse_note(json.loads(os.read(file, 10_000)))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    finally:
        os.close(file)


def _parse_note(note: dict[str, object]) -> Holder:
    """Parse a note, perhaps of another version of BenchBench. Raises ValueError, TypeError or KeyError if invalid."""
    site, kind, operation, since = (str(note[name])[:LONGEST] for name in ("site", "kind", "operation", "since"))
    datetime.fromisoformat(since)
    return Holder(site, kind, operation, int(str(note["process"])), since, note["alone"] is True)
