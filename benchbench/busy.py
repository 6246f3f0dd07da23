"""A sign of life on a terminal, for work whose end cannot be foreseen."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

BEGINS_SECONDS = 1.0


@contextmanager
def busy(stream: TextIO, what: str, *, every: float = BEGINS_SECONDS) -> Iterator[None]:
    """Show `what` on a terminal, and for how long it goes on, in a line that is gone at the end.

    Nothing is shown within the first `every` seconds, nor where `stream` is no terminal.
    """
    if not stream.isatty():
        yield
        return
    ended = threading.Event()
    began = time.monotonic()

    def show() -> None:
        while not ended.wait(every):
            stream.write(f"\r\033[K{what} … {time.monotonic() - began:.0f} s")
            stream.flush()

    shown = threading.Thread(target=show, name="busy", daemon=True)
    shown.start()
    try:
        yield
    finally:
        ended.set()
        shown.join()
        stream.write("\r\033[K")
        stream.flush()
