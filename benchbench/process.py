"""This process: the state that rooms keep in it between calls, and the watcher of its calls that may hang.

Each room has one object for its state, named `process`.
"""

import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar, Protocol


class ProcessState:
    """The caches, connections and open files of a room in this process. `reset` forgets them, as a new process would.

    A module declares its state once, by what forgets it: `process.add(healths.clear)`.
    """

    rooms: ClassVar[list["ProcessState"]] = []

    def __init__(self) -> None:
        self._clears: list[Callable[[], object]] = []
        self.rooms.append(self)

    def add(self, clear: Callable[[], object]) -> None:
        self._clears.append(clear)

    def reset(self) -> None:
        for clear in self._clears:
            clear()


process = ProcessState()  # of what the rooms share


def reset_all() -> None:
    """Forget the state of every room."""
    for room in ProcessState.rooms:
        room.reset()


def collect_less() -> None:
    """Look for garbage less often than Python does, which is a quarter of the start and a fifteenth of later work."""
    gc.set_threshold(50_000, 20, 20)


class Watch(Protocol):
    """Watcher of a block that calls something, the `subject` of a sentence: "The encoder m".

    A call with its own time limit passes it as `within`, in seconds.
    """

    def __call__(self, subject: str, *, within: float | None = None) -> AbstractContextManager[None]: ...


_watches: list[Watch] = []


def watch_calls(watch: Watch) -> None:
    """Install `watch` as the watcher of this process's calls."""
    _watches[:] = [watch]


def calling(subject: str, *, within: float | None = None) -> AbstractContextManager[None]:
    """Return the context of a call that may hang. The call is watched if this process has a watcher."""
    return _watches[0](subject, within=within) if _watches else nullcontext()
