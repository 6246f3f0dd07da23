"""An axis of the matrix: its key, its values, what these affect, and its words on forms, in commands and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchbench.ir.planning.axes.kinds import SWITCH, AxisKind
from benchbench.ir.planning.configuration import DEFAULTS, Configuration

SEARCH, METHODS, RERANKING, REWRITING = "Search", "Dense, lexical, hybrid", "Reranking", "Text of the query"  # sections
EXECUTION = "Execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A key of the matrix: a list of values, each of which sets one field of a configuration.

    `key` names it in a matrix, `field` in a configuration, where `default` is that of the field. `kind` is what a value
    must be, and `canonical` gives its one form, so that equal values are found equal; `expand` gives the settings that
    one may state, whose texts are the values. `touches` says whether the value makes a difference to what a
    configuration finds; if it does, `plain` gives the plainest value that finds the same.

    `option` names it on a command line; `label`, with the sentence `help`, in the `section` of the form; `name` in a
    table of axes. `choices` explains each of a few values. `phrase` puts one value in a sentence, `unstated` None.
    `summary` is its part of the label of a run; without it, that is the phrase of a value other than the default. Where
    the field is `top_k` and nothing else is stated, key, name, label, option are "top_k", "top k", "Top k", "--top-k".
    """

    kind: AxisKind
    help: str
    key: str = ""
    field: str = ""
    section: str = SEARCH
    default: Any = None
    canonical: Callable[[Any], Any] = lambda value: value
    expand: Callable[[Any], list[Any]] | None = None
    touches: Callable[[Configuration], bool] = lambda run: True
    plain: Callable[[Configuration], object] | None = None
    name: str = ""
    label: str = ""
    option: str = ""
    choices: Mapping[Any, str] | None = None
    summary: Callable[[Configuration], str] | None = None
    phrase: Callable[[Any], str] = str
    unstated: str = ""

    @property
    def default_text(self) -> str:
        """Return the default as its kind reads it; "" for None."""
        return "" if self.default is None else self.write([self.default])

    def list_values(self, value: object) -> list[Any]:
        """Return the values, in canonical form, that one of the matrix states."""
        return [self.canonical(value)] if value is None or not self.expand else [*map(str, self.expand(value))]

    def write(self, values: Sequence[Any]) -> str:
        """Return values as the text that its kind reads; None is left out where no text means it."""
        if self.kind is SWITCH:
            return "both" if len(values) > 1 else _write(values[0])
        return ", ".join(_write(each) for each in values if each is not None or self.kind.reader.parse is not str)

    def describe(self, value: object) -> str:
        """Return a value in a sentence."""
        return self.unstated if value is None and self.unstated else self.phrase(value)

    def summarize(self, run: Configuration) -> str:
        """Return its part of the label of a run; "" for none."""
        if self.summary:
            return self.summary(run)
        value = getattr(run, self.field)
        return "" if value == self.default else self.phrase(value)


def _write(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ":".join(map(str, value))
    return "none" if value is None else str(value)


def in_another(run: Configuration) -> str:
    """Return the part of a label of an axis that another names, or that needs no name."""
    return ""


def declare(**axes: Axis) -> dict[str, Axis]:
    """Return axes by field, completed: what one does not state follows from its field."""
    return {field: _complete(axis, field) for field, axis in axes.items()}


def _complete(axis: Axis, field: str) -> Axis:
    name = axis.name or field.replace("_", " ")
    label = axis.label or name[0].upper() + name[1:]
    option = axis.option or f"--{field.replace('_', '-')}"
    key, default = axis.key or field, DEFAULTS[field]
    return replace(axis, field=field, default=default, key=key, name=name, label=label, option=option)
