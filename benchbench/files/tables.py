"""Tables: CSV with a header and commas, semicolons or tabs, and JSON Lines.

Exports put an apostrophe before a CSV cell that a spreadsheet would run as a formula; reading removes it.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.reading.strict_json import decode_chunk, read_objects, read_raw_lines

FORMULA_SIGNS = "=+-@＝＋－＠"  # with the full-width signs, which some spreadsheets treat alike
STARTS_A_FORMULA = (*FORMULA_SIGNS, "\t", "\r", "\n")
PLAIN = (int, float, type(None))  # types that are written as they are


def cell(value: Any) -> Any:
    """Return a value as a cell: numbers unchanged, None as empty, and formulas with a leading apostrophe.

    Spreadsheets treat a cell with a leading apostrophe as text.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else cell(str(value))
    return f"'{value}" if value.startswith(STARTS_A_FORMULA) else value


def render_line(values: Iterable[Any]) -> str:
    """Return one line of CSV, with its end."""
    line = io.StringIO()
    cells = [value if type(value) in PLAIN else cell(value) for value in values]
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()


DELIMITERS = ",;\t"
DELIMITER = re.compile(rb'"?sep=([,;|\t])"?\s*$')  # the first line that Excel writes and reads, but no header
Row = tuple[str, dict[str, Any]]
STARTS = f"[{re.escape(''.join(STARTS_A_FORMULA))}]"
MARKED = re.compile(f"'+{STARTS}")


def read_table(path: Path, *, may_be_short: bool = False) -> tuple[list[str], Iterator[Row]]:
    """Return the names of the columns, and the rows with their places; `.gz` is unpacked.

    A file of JSON Lines has one object per line. The keys of the first are its columns, and cells keep their types. In
    CSV every cell is a string, and a row must have as many cells as the header; a row that `may_be_short` may lack the
    last ones. Errors name the line.
    """
    lines = (line for _, line in read_raw_lines(path) if line.strip())
    first = next(lines, b"")
    if first.lstrip().startswith(b"{"):
        _, keys = next(read_objects(path))
        return list(keys), read_objects(path)
    if excel := DELIMITER.match(first):
        first = next(lines, b"")
    delimiter = excel[1].decode() if excel else find_delimiter(decode_chunk(first, location=path.name))
    header, rows = _read_csv(path, delimiter, may_be_short)
    if not header:
        raise FileFormatError(f"{path.name} is empty: its first line must be a header with the column names.")
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        raise FileFormatError(f"{path.name} has the column {repeated[0][:60]!a} more than once.")
    return header, rows


def find_delimiter(header: str) -> str:
    """Return the most frequent delimiter of a header."""
    return max(DELIMITERS, key=header.count)


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
                if any(cell.strip() for cell in row) and not (
                    line == 1 and DELIMITER.match(delimiter.join(row).encode())
                ):
                    yield f"{path.name}, line {line},", row
                line = reader.line_num + 1
        except csv.Error as error:
            raise FileFormatError(f"{path.name}, line {line}, is not CSV: {error}.") from None

    rows = read_cells()
    _, header = next(rows, ("", []))
    header = _strip_blank([name.strip() for name in header], 0)
    return header, _read_rows(header, rows, may_be_short)


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
