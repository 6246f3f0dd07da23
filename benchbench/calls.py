"""Calls of models and libraries that may hang: the process that makes them may have somebody watch."""

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
    """Return the context of a call that may hang, watched where this process has somebody who watches."""
    return _watch(what, within=within) if _watch else nullcontext()
