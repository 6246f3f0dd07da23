"""Calls: a name with options in parentheses, such as `hnsw(ef_search=100)`, of which each may list several values."""

import itertools
import math
import re
from collections.abc import Collection
from typing import Any

from benchbench.reading.objects import format_value

MAX_SETTINGS = 100  # that one text or object states
MARK = re.compile(r"[,()]")
VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|[^"|,()=\s](?:[^"|,()=]*[^"|,()=\s])?', re.DOTALL)
LISTED = rf"(?:{VALUE.pattern})(?:\s*\|\s*(?:{VALUE.pattern}))*"
CALL_OPTION = re.compile(rf'(?P<name>[^=,|()"]++)=\s*+(?P<values>{LISTED})\s*(?:,|$)', re.DOTALL)
SOMETHING = re.compile(r"[^\s,]")


class CallError(ValueError):
    """A call with invalid syntax; its text is a sentence."""


def split_calls(text: str) -> list[str]:
    """Return the entries of a comma-separated list; commas within parentheses separate options."""
    entries: list[str] = []
    end, is_inside = len(text), False
    for mark in reversed(list(MARK.finditer(text))):  # backwards: the parenthesis after a comma decides
        if mark[0] != ",":
            is_inside = mark[0] == ")"
        elif not is_inside:
            entries.append(text[mark.end() : end])
            end = mark.start()
    entries.append(text[:end])
    return [entry.strip() for entry in reversed(entries) if entry.strip()]


def read_options(text: str, *, expects: str) -> dict[str, list[str]]:
    """Return the options in the text between the parentheses, each with the texts of its values.

    `m=8|16` lists two values; quotes are those of JSON. `expects` describes an option in errors. Raises CallError.
    """
    options: dict[str, list[str]] = {}
    position = 0
    while start := SOMETHING.search(text, position):
        option = CALL_OPTION.match(text, start.start())
        if option is None:
            piece = text[start.start() :].partition(",")[0].strip()
            raise CallError(f"{format_value(piece)} is not {expects}.")
        if (name := option["name"].strip()) in options:
            raise CallError(f"{name} occurs more than once.")
        options[name] = VALUE.findall(option["values"])
        position = option.end()
    return options


def list_combinations(call: object, lists: Collection[Collection[object]]) -> list[tuple[Any, ...]]:
    """Return every choice of one value of each list of a call, the last varying fastest. Raises CallError."""
    if not 0 < (count := math.prod(map(len, lists))) <= MAX_SETTINGS:
        raise CallError(f"{format_value(call)} states {count:,} settings; state 1 to {MAX_SETTINGS}.")
    return list(itertools.product(*lists))


def list_values(value: object) -> list[object]:
    """Return the values that an option of an object lists."""
    return list(value) if isinstance(value, list | tuple) else [value]
