"""JSON as BenchBench writes it: a line for each member of a list, so that a difference of two files can be read."""

import json
from collections.abc import Iterable, Iterator
from typing import Any


def text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, its characters as they are; raise ValueError for NaN, which no JSON holds."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def lines(values: Iterable[Any]) -> Iterator[str]:
    """Yield JSON Lines."""
    for value in values:
        yield text(value) + "\n"


def array(values: Iterable[Any]) -> Iterator[str]:
    """Yield a list, a line for each value, without a line break at its end."""
    before = "[\n"
    for value in values:
        yield before + text(value)
        before = ",\n"
    yield "[]" if before == "[\n" else "\n]"
