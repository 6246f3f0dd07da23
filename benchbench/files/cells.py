"""Lines of CSV that are safe to open: nothing in them is run by a spreadsheet."""

import csv
import io
from collections.abc import Iterable
from typing import Any

FORMULA_SIGNS = "=+-@＝＋－＠"  # full-width ones too: some spreadsheets read them as the others
STARTS_A_FORMULA = (*FORMULA_SIGNS, "\t", "\r", "\n")


def cell(value: Any) -> Any:
    """Return a value as a cell: numbers as they are, nothing for None, and text that no spreadsheet runs as a formula.

    Such text gets an apostrophe before it, which spreadsheets read as "what follows is text".
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else cell(str(value))
    return f"'{value}" if value.startswith(STARTS_A_FORMULA) else value


def csv_line(values: Iterable[Any]) -> str:
    """Return one line of CSV, with its end."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([cell(value) for value in values])
    return line.getvalue()
