"""Locks of a host that keep it quiet while something is timed on it, and notes of who holds it, for those who wait."""

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
PREFIX = "benchbench-holder-"  # of the names of notes
LONGEST = 200  # characters of a text in a note, which another site writes
LOCKS, STOPPED = Path("/proc/locks"), "T"  # Linux's list of locks with their processes, and the state of one


@contextmanager
def share_of_host(*, alone: bool, wait: Callable[[float], None]) -> Iterator[None]:
    """Hold the host for a batch: together with others, or `alone`. `wait(seconds)` is called until it is free.

    Whoever wants it passes a turnstile first, one at a time, so that a batch that must be alone is not kept waiting for
    ever by others that come and go. Both are locks on files, which a killed process gives back. The file that only
    stopped processes hold is replaced, for they do nothing: one that wakes finds its lease lost.
    """
    turnstile = _take("turnstile", fcntl.LOCK_EX, wait)
    try:
        host = _take("host", fcntl.LOCK_EX if alone else fcntl.LOCK_SH, wait)
    finally:
        os.close(turnstile)
    try:
        yield
    finally:
        os.close(host)


def _take(name: str, mode: int, wait: Callable[[float], None]) -> int:
    """Return an open file that this process has locked; to close it gives the lock back."""
    while True:
        lock = _open(name)
        held = try_lock(lock, mode)
        if held and _is_the_one(name, lock):
            return lock
        if not held and _holders_stand_still(lock):
            _replace(name, lock)
        os.close(lock)
        if not held:
            wait(WAIT_SECONDS)


def _holders_stand_still(lock: int) -> bool:
    """Tell whether all processes that hold a lock are stopped; of those in other containers that cannot be seen."""
    inode = f":{os.fstat(lock).st_ino}"
    with suppress(OSError):
        lines = [line.split() for line in LOCKS.read_text().splitlines()]
        holders = [pid for _, kind, _, _, pid, file, *_ in lines if kind == "FLOCK" and file.endswith(inode)]
        states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in holders]
        return bool(states) and set(states) == {STOPPED}
    return False


def _replace(name: str, lock: int) -> None:
    """Let others have a new file, unless there is one already; one process at a time does this."""
    replacing = _open("replacing")
    try:
        if try_lock(replacing, fcntl.LOCK_EX) and _is_the_one(name, lock):
            with suppress(OSError):  # somebody else's, in a folder where everybody deletes their own alone
                _path(name).unlink()
    finally:
        os.close(replacing)


def _is_the_one(name: str, lock: int) -> bool:
    """Tell whether an open file is still what everybody opens."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), _path(name).stat())
    return False


def _path(name: str) -> Path:
    return Path(settings.BENCHBENCH_LOCK_DIR) / f"benchbench-{name}.lock"


def _open(name: str) -> int:
    """Open a lock that all checkouts and users of this host share; reading it suffices to lock it."""
    try:
        return os.open(_path(name), os.O_RDONLY)
    except FileNotFoundError:
        return os.open(_path(name), os.O_RDONLY | os.O_CREAT, 0o644)


@dataclass(frozen=True, slots=True)
class Holder:
    """A batch that holds the host: its site, the kind and id of its operation, its process, since when (ISO 8601)."""

    site: str
    kind: str
    operation: str
    process: int
    since: str
    alone: bool


def site_name() -> str:
    """Return what tells this site from others on the same host: where it is reached, and its database."""
    reached = next((host for host in settings.ALLOWED_HOSTS if host not in ("*", "")), "localhost")
    return f"{reached} (database {settings.DATABASES['default']['NAME']})"


@contextmanager
def note_of(holder: Holder) -> Iterator[None]:
    """Leave a note for others while this block holds the host.

    The note is a file that this process has locked. A process that is killed gives the lock back, so that nobody takes
    what it leaves for the note of a holder.
    """
    folder, name = Path(settings.BENCHBENCH_LOCK_DIR), f"{uuid.uuid4().hex}.json"
    being_written, path = folder / f".{PREFIX}{name}", folder / f"{PREFIX}{name}"
    try:
        file = os.open(being_written, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except OSError as error:
        log.warning("Others on this host cannot see who holds it: %s", error)
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, json.dumps(asdict(holder)).encode())
        being_written.rename(path)  # locked, so that nobody deletes it
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)


def holders() -> list[Holder]:
    """Return who holds the host now, one that is alone first; delete the notes of processes that ended."""
    found = [_read(path) for path in Path(settings.BENCHBENCH_LOCK_DIR).glob(f"{PREFIX}*.json")]
    return sorted(filter(None, found), key=lambda holder: (not holder.alone, holder.since))


def _read(path: Path) -> Holder | None:
    """The holder that a note is of; None where that has ended or is stopped, or the note cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with suppress(OSError):  # somebody else's, or gone
                path.unlink()
            return None
        if _holders_stand_still(file):
            return None
        return _of(json.loads(os.read(file, 10_000)))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    finally:
        os.close(file)


def _of(told: dict[str, object]) -> Holder:
    """Read a note, of which another version of BenchBench may be the writer. Raises ValueError, TypeError, KeyError."""
    site, kind, operation, since = (str(told[name])[:LONGEST] for name in ("site", "kind", "operation", "since"))
    datetime.fromisoformat(since)
    return Holder(site, kind, operation, int(str(told["process"])), since, told["alone"] is True)
