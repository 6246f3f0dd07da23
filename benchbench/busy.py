"""A spinner on a terminal, for work of unknown length."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def busy(stream: TextIO, label: str) -> Iterator[None]:
    """Show `label` and the elapsed time on a terminal, in a line that disappears at the end."""
    if not stream.isatty():
        yield
        return
    from rich.console import Console  # takes a tenth of a second, which programs save
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description} …", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=stream), transient=True, redirect_stdout=False) as line:
        line.add_task(label, total=None)
        yield


WHITESPACE = "\n\t"


def clean_text(text: str) -> str:
    """Return `text` with a space for each unprintable character except line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in WHITESPACE else " " for c in text)


def clean_line(text: str) -> str:
    """Return `text` without unprintable characters, on one line and single-spaced."""
    return " ".join(clean_text(text).split())
