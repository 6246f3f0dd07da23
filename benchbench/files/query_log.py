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
    """The searches of one normalised text. `text` is its most frequent spelling, with white space joined."""

    text: str
    count: int = 0
    clicks: int = 0


@dataclass(slots=True)
class QueryLog:
    """A log by normalised text. `left_out` has the numbers of queries and their demand by reason.

    `demand` sums the counts of all lines, `distinct` counts all texts, with those left out.
    """

    queries: dict[str, LoggedQuery] = field(default_factory=dict)
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)
    lines: int = 0
    demand: int = 0
    distinct: int = 0
    has_clicks: bool = False


def normalise(text: str) -> str:
    """Return the form of a text by which searches are grouped."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def read_query_log(path: Path, *, columns: Mapping[str, str], least_count: int = 1) -> QueryLog:
    """Return the queries of a log, the same for every order of its lines.

    A table has the columns text (or query) and count, and may have clicks; `columns` gives other names. Any other file
    is a log of lines, each a search. Empty texts, texts of more than LONGEST characters, those that cannot be stored,
    and those with a count under `least_count` are left out, with numbers. Errors name line and column.
    """
    log = QueryLog()
    counts, clicks = Counter[str](), Counter[str]()
    for text, count, clicked in _read_searches(path, columns, log):
        spelling = " ".join(text.split())
        counts[spelling] += count
        if clicked:
            clicks[spelling] += clicked
        log.lines += 1
    # The most frequent spelling of a text comes first; of equally frequent ones the first in the alphabet.
    for spelling in sorted(counts, key=lambda spelling: (-counts[spelling], spelling)):
        query = log.queries.setdefault(normalise(spelling), LoggedQuery(spelling))
        query.count += counts[spelling]
        query.clicks += clicks[spelling]
    log.demand, log.distinct = counts.total(), len(log.queries)
    for text, query in list(log.queries.items()):
        if reason := _find_reason(text, query, max(least_count, 1)):
            left = log.left_out.setdefault(reason, {"queries": 0, "demand": 0})
            left["queries"] += 1
            left["demand"] += query.count
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
    log.has_clicks = bool(clicks_column)
    for location, row in rows:
        text = row.get(text_column)
        if isinstance(text, bool) or not isinstance(text, str | int | None):
            raise FileFormatError(f"{location} has the {text_column} {format_value(text)[:40]}: it must be a text.")
        has_clicks = clicks_column and row.get(clicks_column) not in (None, "")
        clicks = _parse_count(location, row, clicks_column) if has_clicks else 0
        yield "" if text is None else str(text), _parse_count(location, row, count_column), clicks


def _choose_columns(path: Path, names: list[str], columns: Mapping[str, str]) -> list[str]:
    """Return the columns of text, count and clicks; the last may be ""."""
    by_name = {name.lower(): name for name in reversed(names)}
    chosen = {name: by_name.get(name, "") for name in FIELDS}
    chosen = chosen | {"text": chosen["text"] or by_name.get("query", "")} | dict(columns)
    for name, column in chosen.items():
        if name not in FIELDS or (column not in names and (column or name != "clicks")):
            raise FileFormatError(
                f"{path.name} has no column {(column or name)[:60]!a} for the field {name[:60]!a}: it has "
                f"{', '.join(names)[:200]}. Name the columns of text, count and clicks, such as count=COLUMN, under "
                "Columns on the page, or --column count=COLUMN by the command.",
                field="columns",
            )
    return list(chosen.values())


def _parse_count(location: str, row: Mapping[str, Any], column: str) -> int:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int) or not DIGITS.fullmatch(str(value)):
        raise FileFormatError(f"{location} has the {column} {format_value(value)[:40]}, which is not a whole number.")
    return int(value)
