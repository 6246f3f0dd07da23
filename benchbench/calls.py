"""Calls of models and libraries that may hang. A process can install a watcher for them."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Watch(Protocol):
    """Watches a block that calls `what`, the subject of a sentence: "The encoder m".

    What has a time limit of its own may take that: `within` so many seconds.
    """

    def __call__(self, what: str, *, within: float | None = None) -> AbstractContextManager[None]: ...


_watch: Watch | None = None


def watch_calls(watch: Watch) -> None:
    """Have `watch` watch the calls of this process from now on."""
    global _watch
    _watch = watch


def calling(what: str, *, within: float | None = None) -> AbstractContextManager[None]:
    """Return the context of a call that may hang. The call is watched if this process has a watcher."""
    return _watch(what, within=within) if _watch else nullcontext()
