"""Tables: CSV with commas, semicolons, tabs or pipes, JSON Lines, and a list of objects in JSON.

Exports put an apostrophe before a CSV cell that a spreadsheet would run as a formula; reading removes it.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.files.columns import NAMES_OF_DOCUMENTS, assign_columns, fold_column
from benchbench.reading.strict_json import decode_chunk, kind, read_objects, read_raw_lines, read_value

FORMULA_SIGNS = "=+-@＝＋－＠"  # with the full-width signs, which some spreadsheets treat alike
STARTS_A_FORMULA = (*FORMULA_SIGNS, "\t", "\r", "\n")
PLAIN = (int, float, type(None))  # types that are written as they are


def cell(value: object) -> Any:
    """Return a value as a cell: numbers unchanged, None as empty, and formulas with a leading apostrophe.

    Spreadsheets treat a cell with a leading apostrophe as text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else cell(str(value))
    return f"'{value}" if value.startswith(STARTS_A_FORMULA) else value


def render_line(values: Iterable[object]) -> str:
    """Return one line of CSV, with its end."""
    line = io.StringIO()
    cells = [value if type(value) in PLAIN else cell(value) for value in values]
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()


IDS = ("id", "_id")  # in objects by id
DELIMITERS = ",;\t|"
QUOTED = re.compile(r'"(?:[^"]|"")*"?')
NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?%?")  # which names no column
MOST_ABOVE = 5  # lines above a header
csv.field_size_limit(2**24)  # characters of a cell; by default 2**17, less than a comment may have
DELIMITER = re.compile(rb'"?sep=([,;|\t])"?\s*$')  # the first line that Excel writes and reads, but no header
RULE = re.compile(r"[\s:-]*")  # below the header of a table in Markdown
Row = tuple[str, dict[str, Any]]
STARTS = f"[{re.escape(''.join(STARTS_A_FORMULA))}]"
MARKED = re.compile(f"'+{STARTS}")


def read_table(path: Path, *, may_be_short: bool = False) -> tuple[list[str], Iterator[Row]]:
    """Return the names of the columns, and the rows with their places; `.gz` is unpacked.

    A file of JSON Lines has one object per line. The keys of the first are its columns, and cells keep their types; so
    do those of a list of objects, and of an object of objects, whose keys are ids. In CSV every cell is a string, and a
    row must have as many cells as the header; a row that `may_be_short` may lack the last ones. Without a header,
    columns are called "column 1" and so on. Errors name the line.
    """
    lines = (line for _, line in read_raw_lines(path) if line.strip())
    first = next(lines, b"")
    if first.lstrip().startswith(b"["):
        return _read_list(path, read_value(path))
    if first.lstrip().startswith(b"{"):
        if (wrapped := _find_rows(path, first, is_alone=not next(lines, b""))) is not None:
            return _read_list(path, wrapped)
        _, keys = next(read_objects(path))
        return list(keys), _read_ids(read_objects(path))
    if excel := DELIMITER.match(first):
        first = next(lines, b"")
    delimiter = excel[1].decode() if excel else find_delimiter(decode_chunk(first, location=path.name))
    header, rows = _read_csv(path, delimiter, may_be_short)
    if not header:
        raise FileFormatError(f"{path.name} is empty: its first line must be a header with the column names.")
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise FileFormatError(f"{path.name} has the column {repeated[0][:60]!a} more than once: rename one.")
    return header, rows


def find_delimiter(header: str) -> str:
    """Return the delimiter of a header by which most cells are names of columns; of several, the most frequent."""
    bare = QUOTED.sub("", header)
    cells = {mark: [cell.strip().strip('"') for cell in header.split(mark)] for mark in DELIMITERS}
    return max(DELIMITERS, key=lambda mark: (len(assign_columns(dict.fromkeys(cells[mark]), {}, ())), bare.count(mark)))


def plain(cell: str) -> str:
    """Return the text of a cell without the apostrophe that protects it from spreadsheets."""
    return cell[1:] if MARKED.match(cell) else cell


def _read_csv(path: Path, delimiter: str, may_be_short: bool) -> tuple[list[str], Iterator[Row]]:
    lines = (decode_chunk(line, location=f"{path.name}, line {number},") for number, line in read_raw_lines(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)

    def read_cells() -> Iterator[tuple[str, list[str]]]:
        line = 1
        try:
            for row in reader:
                if delimiter == "\t" and any("\n" in cell and "\t" in cell for cell in row):
                    raise FileFormatError(
                        f"{path.name}, line {line}, has a cell that takes in the rows below: close its quotation mark, "
                        "or write each mark of the cell twice and one around it."
                    )
                if any(cell.strip() for cell in row) and not _is_mark(row, delimiter, line):
                    yield f"{path.name}, line {line},", [*map(str.strip, row)] if delimiter == "|" else row
                line = reader.line_num + 1
        except csv.Error as error:
            raise FileFormatError(f"{path.name}, line {line}, is not CSV: {error}.") from None

    rows = read_cells()
    _, header = next(rows, ("", []))
    header = _strip_blank([name.strip() for name in header], 0)
    if header.count("") > 1:
        header = [name or f"column {number}" for number, name in enumerate(header, start=1)]
    if lacks_header(header):
        first = (f"{path.name}, line 1,", header)
        header = [f"column {number}" for number in range(1, len(header) + 1)]
        return header, _read_rows(header, chain([first], rows), may_be_short)
    if len([*filter(None, header)]) == 1:
        rows = _refuse_lines_above(rows)
    return header, _read_rows(header, rows, may_be_short)


def _is_mark(row: Sequence[str], delimiter: str, line: int) -> bool:
    """Return whether a line holds no cells: the first, for Excel, or that below the header of a table in Markdown."""
    if delimiter == "|" and RULE.fullmatch("".join(row)):
        return True
    return line == 1 and DELIMITER.match(delimiter.join(row).encode()) is not None


def lacks_header(cells: Sequence[str]) -> bool:
    """Return whether the first line of a table is a row: no cell is a name of a column, and one is a number."""
    return any(map(NUMBER.fullmatch, cells)) and not assign_columns(cells, {}, ())


def _refuse_lines_above(rows: Iterator[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Return the rows below a header of one cell, which may be a title. Raises FileFormatError for a header there."""
    first = list(islice(rows, MOST_ABOVE))
    for location, cells in first:
        line = next(csv.reader(cells, delimiter=find_delimiter(cells[0]))) if len(cells) == 1 else cells
        if len(assign_columns({*filter(None, line)}, {}, ())) > 1:
            raise FileFormatError(f"{location} has the names of columns, so it must be first: remove what is above it.")
    return chain(first, rows)


def _find_rows(path: Path, first: bytes, *, is_alone: bool) -> list[Any] | None:
    """Return the rows of a file that is one object: its only list of objects, its objects by id, else itself.

    Such a list is that of {"questions": [{…}]}, and objects by id are those of {"d1": {"text": "A pear."}, "d2": {…}}.
    None for JSON Lines: another line follows the `first`, which is an object, or that has the names of a row.
    """
    is_line = True
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        value, is_alone, is_line = read_value(path), True, False
    lists = {key: rows for key, rows in value.items() if isinstance(rows, list) and rows and isinstance(rows[0], dict)}
    names = [key for key in value if key not in lists]
    columns = assign_columns(names, {}, ())
    if is_alone and not is_document(names):
        if len(lists) == 1 and not columns:
            return next(iter(lists.values()))
        if len(columns) < len(names) and all(_has_id(row, key) for key, row in value.items()):
            return [{"id": key} | {name: row[name] for name in row if name not in IDS} for key, row in value.items()]
    return None if is_line else [value]


def _has_id(row: object, key: str) -> bool:
    """Return whether a row may have the id `key`: it is an object without another one."""
    return isinstance(row, dict) and all(row.get(name, key) == key for name in IDS)


def is_document(names: Iterable[str]) -> bool:
    """Return whether keys are those of a document: one is a name for an id, and one for a text."""
    letters = {*map(fold_column, names)}
    return not any(letters.isdisjoint(NAMES_OF_DOCUMENTS[field]) for field in ("id", "text"))


def _read_list(path: Path, objects: list[Any]) -> tuple[list[str], Iterator[Row]]:
    """Return the keys and the objects of a list in JSON."""
    for number, row in enumerate(objects):
        if not isinstance(row, dict):
            raise FileFormatError(f"{path.name}[{number}] is {kind(row)}, and each entry must be an object.")
    names = list(dict.fromkeys(name for row in objects for name in row))
    return names, _read_ids((f"{path.name}[{number}]", row) for number, row in enumerate(objects))


def _read_ids(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows with the ids of MongoDB's exports, {"_id": {"$oid": "5f"}}, as texts."""
    for location, row in rows:
        yield (
            location,
            {
                name: value["$oid"] if isinstance(value, dict) and value.keys() == {"$oid"} else value
                for name, value in row.items()
            },
        )


def _read_rows(header: list[str], rows: Iterator[tuple[str, list[str]]], may_be_short: bool) -> Iterator[Row]:
    for location, cells in rows:
        row = _strip_blank(cells, len(header))
        if len(row) > len(header) or (len(row) < len(header) and not may_be_short):
            raise FileFormatError(f"{location} has {len(row)} cells, but the header has {len(header)}.")
        yield location, dict(zip(header, map(plain, row), strict=False))


def _strip_blank(cells: list[str], minimum: int) -> list[str]:
    """Return a row without blank cells beyond a `minimum` number, which spreadsheets write at the end."""
    length = len(cells)
    while length > minimum and not cells[length - 1].strip():
        length -= 1
    return cells[:length]
