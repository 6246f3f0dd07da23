"""Errors of use cases, with the keys of the request."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import KEYS

OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


@contextmanager
def naming(**keys: str | None) -> Iterator[None]:
    """Let an error name what is at fault as the request does: `naming(mapping="mapping_id")`.

    The names are those by which use cases know the keys; None for what stands in the address, which no key names.
    """
    try:
        yield
    except BenchbenchError as error:
        if error.field in keys:
            key = keys[error.field]
            error.message = error.message.removeprefix(f"{error.field}: ") if key else error.message
            error.field = key
        raise


@contextmanager
def naming_matrix(matrix: Mapping[str, Any]) -> Iterator[None]:
    """Let an error about a key of a stated matrix carry its whole path: `config_matrix.search_modes`."""
    try:
        yield
    except BenchbenchError as error:
        if (error.field or "").partition("[")[0] in {*KEYS, *matrix}:
            error.field = f"config_matrix.{error.field}"
        raise


@contextmanager
def naming_options() -> Iterator[None]:
    """Let an error that speaks of options, as commands have them, speak of keys: `order_by`, not `--order-by`."""
    try:
        yield
    except BenchbenchError as error:
        error.message = OPTION.sub(lambda match: match[1].replace("-", "_"), error.message)
        raise
