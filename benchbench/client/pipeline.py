"""A step of a pipeline: a client for its length, sentences for its errors, and its exit status."""

import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benchbench.client.client import Client
from benchbench.client.connection import ClientError

NOT_DECIDED = 2


@contextmanager
def pipeline(address: str | None = None, *, token: str | None = None) -> Iterator[Client]:
    """Give a client for the length of a pipeline's step, and end the program with status 2 where a step of it fails.

    What went wrong (a ClientError, or a file that is not there) is a sentence on stderr then. What is printed in the
    meantime is seen at once: a pipeline's output is no terminal, and Python would keep it to the end.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        with Client(address, token=token) as client:
            yield client
    except (ClientError, OSError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(NOT_DECIDED) from error


def exit_status(verdict: Mapping[str, Any]) -> int:
    """Return what `manage.py gate` exits with: 0 passed, 1 failed, 2 undecided."""
    return {"passed": 0, "failed": 1, "undecided": NOT_DECIDED}[verdict["outcome"]]
