"""Output on any terminal: a spinner for work of unknown length, text without control characters, any encoding."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TextIO


class LenientFile(io.FileIO):
    """A file descriptor that discards output after its reader has ended, as in `| head`."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return len(data)


def open_outputs() -> None:
    """Replace stdout and stderr by streams on which no text fails, so that output never changes the exit status.

    A character that the encoding lacks is written as `\\xe9` or `\\u20ac`. Output to a closed pipe, or to a stream that
    the caller closed, is discarded.
    """
    sys.stdout, sys.stderr = _open_output(sys.stdout), _open_output(sys.stderr)


def _open_output(stream: TextIO | None) -> TextIO:
    if stream is None:  # `>&-`
        return open(os.devnull, "w", encoding="utf-8")
    stream.flush()
    buffered = io.BufferedWriter(LenientFile(stream.fileno(), "w", closefd=False))
    lines = stream is sys.stderr or stream.isatty() or getattr(stream, "write_through", False)
    return io.TextIOWrapper(buffered, stream.encoding, "backslashreplace", line_buffering=lines)


@contextmanager
def busy(stream: TextIO, label: str) -> Iterator[None]:
    """Show `label` and the elapsed time on a terminal, in a line that disappears at the end."""
    # Rich takes a tenth of a second, which programs save, and is not in the light wheel.
    if not stream.isatty() or find_spec("rich") is None:
        yield
        return
    from rich.console import Console
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
