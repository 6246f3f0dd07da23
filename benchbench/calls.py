"""Calls of models and libraries that may hang. A process can install a watcher for them."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Watch(Protocol):
    """Watcher of a block that calls something, the `subject` of a sentence: "The encoder m".

    A call with its own time limit passes it as `within`, in seconds.
    """

    def __call__(self, subject: str, *, within: float | None = None) -> AbstractContextManager[None]: ...


_watch: Watch | None = None


def watch_calls(watch: Watch) -> None:
    """Install `watch` as the watcher of this process's calls."""
    global _watch
    _watch = watch


def calling(subject: str, *, within: float | None = None) -> AbstractContextManager[None]:
    """Return the context of a call that may hang. The call is watched if this process has a watcher."""
    return _watch(subject, within=within) if _watch else nullcontext()
