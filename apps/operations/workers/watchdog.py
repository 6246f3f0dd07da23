"""The watchdog: until when a worker's process must have done what it is at, told to the process that watches it.

A process that hangs in native code hears no signal and raises no exception, and may run no other thread either. So it
writes down beforehand, in memory that it shares with the pool (`pool.py`), when it is overdue and what to say of it.
Where nobody watches, as in a command that waits, a lease at least is not renewed past its time.
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

GRACE_SECONDS = 10.0  # past a batch's limit or a cancel, in which a process that still hears ends by itself
SIZE = 65_536
HEAD = struct.Struct("<Qdi")  # beats, when it is overdue (seconds of the monotonic clock), the length of the note
NEVER = float("inf")
Note = dict[str, Any]


class Board:
    """What a worker shows to the pool that forked it: a count that shows that it lives, a time, and a note."""

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
        """Return the beats so far, and when the worker is overdue on the monotonic clock."""
        beats, overdue, _ = HEAD.unpack_from(self._memory, 0)
        return beats, overdue

    def note(self) -> Note:
        """Return the note of a worker that has ended: one that goes on may be writing it."""
        length = HEAD.unpack_from(self._memory, 0)[2]
        try:
            note: Note = json.loads(self._memory[HEAD.size : HEAD.size + length])
        except ValueError:
            return {}
        return note


class _Watch:
    """The limits that hold at present, of this process; the soonest is on the board, if there is one."""

    def __init__(self) -> None:
        self.board: Board | None = None
        self.about: Note = {}
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


_watch = _Watch()
is_overdue = _watch.is_overdue


def show_on(board: Board) -> None:
    """Show from now on what this process is at."""
    _watch.board = board


@contextmanager
def limit(seconds: float, sentence: str) -> Iterator[None]:
    """Be done with this block within some seconds, or the process is replaced, and its batch is told the sentence."""
    key = object()
    _watch.set(key, (time.monotonic() + seconds, {"sentence": sentence, **_watch.about}))
    try:
        yield
    finally:
        _watch.set(key, None)


@contextmanager
def about(stage: str, query_ids: Sequence[int]) -> Iterator[None]:
    """Say of the calls in this block for which queries they are, in which stage."""
    before = _watch.about
    _watch.about = {"stage": stage, "queries": list(query_ids)}
    try:
        yield
    finally:
        _watch.about = before


@contextmanager
def calling(what: str, *, within: float | None = None) -> Iterator[None]:
    """Call a model or a library that may hang. `what` is the subject of the sentence: "The encoder m".

    For one query it may take twice BENCHBENCH_QUERY_TIMEOUT_MS, so that what is only slow is measured and told as such;
    for several as often that, but never more than BENCHBENCH_CALL_TIMEOUT_SECONDS, as for texts of documents. What has
    a limit of its own may take that, `within` so many seconds, and GRACE_SECONDS more.
    """
    seconds = float(settings.BENCHBENCH_CALL_TIMEOUT_SECONDS) if within is None else within + GRACE_SECONDS
    if within is None and (queries := _watch.about.get("queries")):
        seconds = min(seconds, len(queries) * 2 * settings.BENCHBENCH_QUERY_TIMEOUT_MS / 1000)
    with limit(seconds, f"{what} did not answer within {seconds:g} s, and was interrupted."):
        yield


class Ending:
    """What ends a process that goes on with a batch that nobody wants any more: `begin` it, from any thread."""

    def begin(self) -> None:
        _watch.set(self, (time.monotonic() + GRACE_SECONDS, {}))

    def end(self) -> None:
        _watch.set(self, None)
