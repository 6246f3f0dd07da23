"""The watchdog: deadlines of a worker's process, written where the pool can read them.

A process that hangs in native code handles no signal, raises no exception, and may run no other thread. So it writes
its deadline and a message beforehand into memory shared with the pool (`pool.py`). Without a pool, as in a command
that waits, at least its lease is not renewed past the deadline.
"""

import json
import mmap
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings

GRACE_SECONDS = 10.0  # after a batch's limit or a cancel, for a responsive process to end by itself
SIZE = 65_536
HEAD = struct.Struct("<Qdi")  # beats, deadline (seconds of the monotonic clock), length of the note
NEVER = float("inf")
Note = dict[str, Any]


class Board:
    """Memory that a worker shares with the pool that forked it: a count of beats, a deadline, and a note."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        self._beats = 0
        self.show(NEVER, {})

    def show(self, overdue: float, note: Note) -> None:
        text = json.dumps(note).encode()
        text = text if len(text) <= SIZE - HEAD.size else b"{}"
        self._memory[HEAD.size : HEAD.size + len(text)] = text
        HEAD.pack_into(self._memory, 0, self._beats, overdue, len(text))

    def beat(self) -> None:
        self._beats += 1
        struct.pack_into("<Q", self._memory, 0, self._beats)

    def read(self) -> tuple[int, float]:
        """Return the beats so far and the deadline on the monotonic clock."""
        beats, overdue, _ = HEAD.unpack_from(self._memory, 0)
        return beats, overdue

    def note(self) -> Note:
        """Return the note of an ended worker. A running one may be writing it."""
        length = HEAD.unpack_from(self._memory, 0)[2]
        try:
            note: Note = json.loads(self._memory[HEAD.size : HEAD.size + length])
        except ValueError:
            return {}
        return note


class _Watch:
    """The current limits of this process; the earliest is on the board, if it has one."""

    def __init__(self) -> None:
        self.board: Board | None = None
        self._limits: dict[object, tuple[float, Note]] = {}
        self._lock = threading.Lock()

    def set(self, key: object, limit: tuple[float, Note] | None) -> None:
        with self._lock:
            if limit is None:
                self._limits.pop(key, None)
            else:
                self._limits[key] = limit
            if self.board is not None:
                self.board.show(*min(self._limits.values(), key=lambda limit: limit[0], default=(NEVER, {})))

    def is_overdue(self) -> bool:
        with self._lock:
            return any(overdue < time.monotonic() for overdue, _ in self._limits.values())


class _Work(threading.local):
    """The stage and the queries that a thread is at."""

    def __init__(self) -> None:
        self.note: Note = {}


_watch, _work = _Watch(), _Work()
is_overdue = _watch.is_overdue


def show_on(board: Board | None) -> None:
    """Write the limits of this process to `board` from now on, or to none."""
    _watch.board = board


@contextmanager
def limit(seconds: float, sentence: str) -> Iterator[None]:
    """Limit the time of this block. Past it the process is replaced, and `sentence` is its batch's error."""
    key = object()
    _watch.set(key, (time.monotonic() + seconds, {"sentence": sentence, **_work.note}))
    try:
        yield
    finally:
        _watch.set(key, None)


@contextmanager
def about(stage: str, query_ids: Sequence[int]) -> Iterator[None]:
    """Note the stage and the queries of the calls in this block."""
    before = _work.note
    _work.note = {"stage": stage, "queries": list(query_ids)}
    try:
        yield
    finally:
        _work.note = before


@contextmanager
def calling(subject: str, *, within: float | None = None) -> Iterator[None]:
    """Limit a call of a model or library that may hang. `subject` is the subject of the message: "The encoder m".

    The limit is twice BENCHBENCH_QUERY_TIMEOUT_MS per query, so that slow calls are still measured and reported as
    slow. It is at most BENCHBENCH_CALL_TIMEOUT_SECONDS, which also applies to texts of documents. A call with its own
    limit of `within` seconds gets GRACE_SECONDS more.
    """
    seconds = float(settings.BENCHBENCH_CALL_TIMEOUT_SECONDS) if within is None else within + GRACE_SECONDS
    if within is None and (queries := _work.note.get("queries")):
        seconds = min(seconds, len(queries) * 2 * settings.BENCHBENCH_QUERY_TIMEOUT_MS / 1000)
    with limit(seconds, f"{subject} did not answer within {seconds:g} s and was interrupted."):
        yield


class Ending:
    """A deadline that ends a process still working on a batch that is not needed: `begin` it from any thread."""

    def begin(self) -> None:
        _watch.set(self, (time.monotonic() + GRACE_SECONDS, {}))

    def end(self) -> None:
        _watch.set(self, None)
