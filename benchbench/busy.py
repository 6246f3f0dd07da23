"""A spinner on a terminal, for work whose end cannot be foreseen."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Timer
from typing import TextIO

QUICK_SECONDS = 1.0


@contextmanager
def busy(stream: TextIO, what: str, *, after: float = QUICK_SECONDS) -> Iterator[None]:
    """Show `what` on a terminal, and for how long it goes on, in a line that is gone at the end.

    Nothing is shown within the first `after` seconds, nor where `stream` is no terminal.
    """
    if not stream.isatty():
        yield
        return
    began = time.monotonic()

    def show() -> None:
        from rich.console import Console  # takes a tenth of a second, which quick work is spared
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description} …", markup=False), TimeElapsedColumn()
        line = Progress(*columns, console=Console(file=stream), transient=True, redirect_stdout=False)
        line.add_task(what, total=None)
        line.tasks[0].start_time = began
        shown.enter_context(line)

    with ExitStack() as shown:
        timer = Timer(after, show)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


KEPT = "\n\t"


def printable(text: str) -> str:
    """Return `text` with a space for each character that does not print; ends of lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in KEPT else " " for c in text)


def on_one_line(text: str) -> str:
    """Return `text` without what does not print, on one line and single-spaced."""
    return " ".join(printable(text).split())
