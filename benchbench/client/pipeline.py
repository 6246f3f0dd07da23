"""A step of a pipeline: its client, its error messages and its exit status."""

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
    """Yield a client for a step of a pipeline, and exit with status 2 if the step fails.

    The error (a ClientError or OSError) is printed to stderr. Standard output is flushed after each line: it is not a
    terminal in a pipeline, and Python would buffer it until the end.
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
    """Return the exit status of `manage.py gate`: 0 passed, 1 failed, 2 undecided."""
    return {"passed": 0, "failed": 1, "undecided": NOT_DECIDED}[verdict["outcome"]]
