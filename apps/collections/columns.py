"""Choices of the columns of a table: by the selects of a preview, or by the options of a command."""

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.management.base import CommandParser

from benchbench.files.columns import Field, parse_choices

MOST_COLUMNS = 100  # that can be chosen for; a request may have a thousand fields


@dataclass(frozen=True)
class Select:
    """A select for a column, with its first cell: its options as (value, label, whether it is selected)."""

    column: str
    sample: str
    options: Sequence[tuple[str, str, bool]]


class ColumnChoices:
    """The columns of a table and the field of each: in `table` at first those chosen, later those that were read.

    The selects are called `name`. If a reader `keeps_guesses`, a select of a column that was not chosen for sends
    nothing, so that its field may follow other choices.
    """

    def __init__(self, data: Any, fields: Sequence[Field], *, name: str = "column", keeps_guesses: bool = True) -> None:
        lines = data.getlist(name)[:MOST_COLUMNS] if hasattr(data, "getlist") else []
        chosen = (line.partition("=") for line in lines if line)
        self.name, self.fields, self.keeps_guesses = name, fields, keeps_guesses
        self.chosen = {column: field for field, _, column in chosen}
        self.show(self.chosen)

    def show(self, table: Mapping[str, str], samples: Mapping[str, str] | None = None) -> None:
        """Let the selects show the field of each column, and how its first cell begins."""
        self.table, self.samples = dict(table), samples or {}

    def list_pairs(self, written: str = "", *, with_selects: bool = True) -> list[tuple[str, str]]:
        """Return pairs of field and column: what is written goes before what was chosen. Raises FileFormatError."""
        pairs = parse_choices(written.splitlines())
        mapped = {column for _, column in pairs}
        selected = self.chosen.items() if with_selects else ()
        return [*pairs, *((field, column) for column, field in selected if column and column not in mapped)]

    def name_fields(self, message: str) -> str:
        """Return an error about the table with fields in the words of the selects, except those that are columns."""
        labels = {field.name: f"“{field.label}”" for field in self.fields if "_" in field.name} if self.table else {}
        return re.sub(r"\b\w+\b(?!=)", lambda m: m[0] if m[0] in self.table else labels.get(m[0], m[0]), message)

    def list_selects(self) -> list[Select]:
        """Return a select for each of the first columns."""
        labels = {"": "not read"} | {field.name: field.label for field in self.fields}
        return [
            Select(
                column,
                self.samples.get(column, ""),
                [(self._send(column, name, name == read), labels[name], name == read) for name in labels],
            )
            for column, read in list(self.table.items())[:MOST_COLUMNS]
        ]

    def _send(self, column: str, field: str, is_read: bool) -> str:
        return "" if is_read and self.keeps_guesses and column not in self.chosen else f"{field}={column}"


def add_column_arguments(parser: CommandParser, *, example: str) -> None:
    """Add --column and --ignore-column, see `list_choices`."""

    def check_column(text: str) -> str:
        field, _, column = text.partition("=")
        if not field or not column:
            raise ArgumentTypeError(f"{text!r} is not FIELD=COLUMN, such as {example}")
        return text

    parser.add_argument(
        "--column",
        action="append",
        default=[],
        type=check_column,
        metavar="FIELD=COLUMN",
        help="The table column of a field, if their names differ; repeat it for each.",
    )
    parser.add_argument(
        "--ignore-column",
        action="append",
        default=[],
        metavar="COLUMN",
        help="A table column to ignore; repeat it for each.",
    )


def list_choices(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return pairs of field and column that the options choose; "" is of a column that is not read."""
    return parse_choices([*options["column"], *(f"={name}" for name in options["ignore_column"])])
