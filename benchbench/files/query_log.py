"""Logs of queries: a table or JSON Lines with texts and counts, or a line for each search.

Texts are compared after Unicode NFKC, case folding, and joining white space to single spaces. Clicks are summed, and
never become grades: they depend on the ranks that users saw.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.files.sniffing import LOG_TEXTS
from benchbench.files.tables import find_delimiter, read_table
from benchbench.reading.objects import format_value
from benchbench.reading.strict_json import is_storable, read_lines

FIELDS = ("text", "count", "clicks")
LONGEST = 200
DIGITS = re.compile(r"\s*[0-9]{1,15}\s*")


@dataclass(slots=True)
class LoggedQuery:
    """The searches of one normalised text. `spellings` counts them by text as written, with white space joined."""

    count: int = 0
    clicks: int = 0
    spellings: Counter[str] = field(default_factory=Counter)

    @property
    def text(self) -> str:
        """Return the most frequent spelling; of equally frequent ones the first in the alphabet."""
        return min(self.spellings, key=lambda text: (-self.spellings[text], text))


@dataclass(slots=True)
class QueryLog:
    """A log by normalised text. `left_out` has the number of texts and the demand for each reason.

    `demand` sums the counts of all lines, `distinct` counts all texts, with those left out.
    """

    queries: dict[str, LoggedQuery] = field(default_factory=dict)
    left_out: dict[str, tuple[int, int]] = field(default_factory=dict)
    lines: int = 0
    demand: int = 0
    distinct: int = 0
    unread_columns: list[str] = field(default_factory=list)
    has_clicks: bool = False


def normalise(text: str) -> str:
    """Return the form of a text by which searches are grouped."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def read_query_log(path: Path, *, columns: Mapping[str, str], least_count: int = 1) -> QueryLog:
    """Return the queries of a log in the order of their first lines.

    A table has the columns text (or query) and count, and may have clicks; `columns` gives other names. Any other file
    is a log of lines, each a search. Empty texts, texts of more than LONGEST characters, those that cannot be stored,
    and those with a count under `least_count` are left out, with numbers. Errors name line and column.
    """
    log = QueryLog()
    for text, count, clicks in _read_searches(path, columns, log):
        query = log.queries.setdefault(normalise(text), LoggedQuery())
        query.count += count
        query.clicks += clicks
        query.spellings[" ".join(text.split())] += count
        log.lines += 1
        log.demand += count
    log.distinct = len(log.queries)
    for text, query in list(log.queries.items()):
        if reason := _find_reason(text, query, max(least_count, 1)):
            texts, demand = log.left_out.get(reason, (0, 0))
            log.left_out[reason] = texts + 1, demand + query.count
            del log.queries[text]
    return log


def _find_reason(text: str, query: LoggedQuery, least_count: int) -> str:
    """Return why a query is left out, "" if it is kept."""
    if not text:
        return "empty"
    if max(len(text), len(query.text)) > LONGEST:
        return f"longer than {LONGEST} characters"
    if not is_storable(text):
        return "with characters that cannot be stored"
    return f"with a count under {least_count:,}" if query.count < least_count else ""


def _read_searches(path: Path, columns: Mapping[str, str], log: QueryLog) -> Iterator[tuple[str, int, int]]:
    """Yield text, count and clicks of each line."""
    _, first = next(read_lines(path), ("", ""))
    header = {cell.strip().strip('"').lower() for cell in first.split(find_delimiter(first))}
    if not columns and not first.lstrip().startswith("{") and header.isdisjoint(LOG_TEXTS):
        yield from ((line, 1, 0) for _, line in read_lines(path))
        return
    names, rows = read_table(path)
    text_column, count_column, clicks_column = _choose_columns(path, names, columns)
    log.unread_columns = [name for name in names if name not in (text_column, count_column, clicks_column)]
    log.has_clicks = bool(clicks_column)
    for location, row in rows:
        text = row.get(text_column)
        if isinstance(text, bool) or not isinstance(text, str | int | None):
            raise FileFormatError(f"{location} has the {text_column} {format_value(text)[:40]}: it must be a text.")
        clicks = clicks_column and row.get(clicks_column) not in (None, "")
        yield (
            "" if text is None else str(text),
            _parse_count(location, row, count_column),
            _parse_count(location, row, clicks_column) if clicks else 0,
        )


def _choose_columns(path: Path, names: list[str], columns: Mapping[str, str]) -> list[str]:
    """Return the columns of text, count and clicks; the last may be ""."""
    by_name = {name.lower(): name for name in reversed(names)}
    chosen = {name: by_name.get(name, "") for name in FIELDS}
    chosen["text"] = chosen["text"] or by_name.get("query", "")
    for name, column in {**chosen, **columns}.items():
        if name not in FIELDS or (column not in names and (column or name != "clicks")):
            raise FileFormatError(
                f"{path.name} has no column {(column or name)[:60]!a} for the field {name[:60]!a}: it has "
                f"{', '.join(names)[:200]}. Name the columns of text, count and clicks, such as count=COLUMN, under "
                "Columns on the page, or --column count=COLUMN by the command.",
                field="columns",
            )
    return list((chosen | dict(columns)).values())


def _parse_count(location: str, row: Mapping[str, Any], column: str) -> int:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int) or not DIGITS.fullmatch(str(value)):
        raise FileFormatError(f"{location} has the {column} {format_value(value)[:40]}, which is not a whole number.")
    return int(value)
