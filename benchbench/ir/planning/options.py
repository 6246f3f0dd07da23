"""Options that a method declares, with their defaults: reading, checking and writing the values of a call."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from benchbench.reading.calls import CallError, read_options
from benchbench.reading.kinds import Kind
from benchbench.reading.objects import format_value

Value = int | float | str
Values = tuple[tuple[str, Value], ...]  # of every option of a method, in order
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
MAX_DIGITS = 18  # of a number; a longer one is out of every range, and Python converts none of thousands


class Option(NamedTuple):
    """An option of a method. `builds`: it shapes the index itself; else only the search."""

    default: Value
    kind: Kind
    builds: bool = False


def read_values(text: str, *, example: str) -> dict[str, list[Value]]:
    """Return the values that each option in the text between the parentheses lists. Raises CallError."""
    options = read_options(text, expects=f"an option such as {example}")
    return {name: [_read_value(value) for value in values] for name, values in options.items()}


def _read_value(text: str) -> Value:
    match = NUMBER.fullmatch(text) if len(text) <= MAX_DIGITS else None
    if match is None:
        return text
    return float(text) if match[1] else int(text)


def complete_values(method: str, options: Mapping[str, Option], values: Mapping[str, Any]) -> Values:
    """Return the value of every option, its default where none is given. Raises CallError."""
    for name, value in values.items():
        if name not in options:
            near = difflib.get_close_matches(str(name), options, n=1)
            choices = f"choose one of {', '.join(options)}." if options else "it takes no options."
            hint = f"did you mean {near[0]}?" if near else choices
            raise CallError(f"{method} has no option {format_value(name)}; {hint}")
        if not options[name].kind.holds(value):
            raise CallError(f"{name}: {format_value(value)} is not {options[name].kind.words}.")
    return tuple((name, values.get(name, option.default)) for name, option in options.items())


def render_call(method: str, options: Mapping[str, Option], values: Values, always: Collection[str] = ()) -> str:
    """Return the canonical text of a call: without the options at their default, except those to show `always`."""
    some = [f"{name}={value}" for name, value in values if name in always or value != options[name].default]
    return f"{method}({', '.join(some)})" if some else method
