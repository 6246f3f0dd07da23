"""Workbooks of spreadsheets: Excel's with one sheet are written, and a sheet is read as CSV.

Written numbers are numbers, all else is text, so 007 stays 007 and no formula runs.
"""

import csv
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.local_files.placing import scratch_folder

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS, MOST_CHARACTERS = 2**20, 32_767  # of a sheet, of a cell
EXACT = 2**53  # a greater whole number loses digits in a cell
BLOCK_BYTES = 2**20
ENDINGS = (".xlsx", ".xlsm")  # of workbooks that are read
ZIP, LOCKED = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # how they begin, the latter with a password
MOST_BYTES = 2**27  # that a workbook may unpack to, because its texts are read at once
MOST_CELLS = 2**24  # of a sheet, blank ones before the last of a row included
AS_CSV = "Save its sheet as CSV UTF-8, and use that"
CREATED = datetime(2000, 1, 1)  # in every file, so that equal rows give equal bytes
OPTIONS = {
    "constant_memory": True,
    "strings_to_numbers": False,
    "strings_to_formulas": False,
    "strings_to_urls": False,
}


def write_workbook(rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield the file of a workbook whose first row is the header. A longer text than a cell holds is cut, with "…".

    Raises FileFormatError for more rows than a sheet holds.
    """
    from xlsxwriter import Workbook  # imported here: most processes write none

    with scratch_folder() as folder:
        path = folder / "book.xlsx"
        workbook = Workbook(str(path), OPTIONS | {"tmpdir": str(folder)})
        workbook.set_properties({"created": CREATED})
        sheet = workbook.add_worksheet()
        sheet.freeze_panes(1, 0)
        try:
            for number, row in enumerate(rows):
                if number == MOST_ROWS:
                    raise FileFormatError(f"A sheet of Excel has only {MOST_ROWS:,} rows: export as CSV.")
                for column, value in enumerate(row):
                    _write_cell(sheet, number, column, value)
        finally:
            workbook.close()
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                yield block


def _write_cell(sheet: Any, row: int, column: int, value: object) -> None:
    if value is None or value == "":
        return
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= EXACT:
        sheet.write_number(row, column, value)
        return
    text = str(value)
    sheet.write_string(row, column, text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…")


def is_workbook(path: Path) -> bool:
    """Return whether a file is a workbook by its name and first bytes."""
    if path.suffix.lower() not in ENDINGS:
        return False
    with path.open("rb") as file:
        return file.read(4) in (ZIP, LOCKED)


def copy_sheet(path: Path, target: Path) -> str:
    """Write the first sheet of a workbook that has cells as CSV; return a sentence that names it among several, or "".

    Whole numbers have no decimals, dates are as 2024-01-31, and formulas are the values that were stored. One row is in
    memory at a time. Raises FileFormatError.
    """
    from openpyxl import load_workbook

    _require_size(path)
    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # which the file states, perhaps of all that a sheet may have
                if _copy_rows(sheet.iter_rows(values_only=True), path, target):
                    break
            else:
                raise FileFormatError(f"{path.name} is a workbook without a cell.")
    except FileFormatError:
        raise
    except Exception:  # of any of its parsers
        raise FileFormatError(
            f"{path.name} cannot be read as a workbook: it is damaged, or has a password. {AS_CSV}."
        ) from None
    count = len(book.worksheets)
    return f"{path.name} has {count} sheets: only “{sheet.title}” was read." if count > 1 else ""


def _require_size(path: Path) -> None:
    """Raise FileFormatError for a workbook that is damaged, or larger than MOST_BYTES when it is unpacked."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
            raise FileFormatError(f"{path.name} unpacks to more than {MOST_BYTES:,} bytes. {AS_CSV}.")
        try:
            damaged = archive.testzip()  # also a member that is larger than it says
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            damaged = path.name
    if damaged:
        raise FileFormatError(f"{path.name} is damaged. Save it again.")


def _copy_rows(rows: Iterable[Sequence[object]], path: Path, target: Path) -> bool:
    """Write the rows of a sheet from the first column of its header on. Return whether a cell has a value.

    A row has as many cells as the header at least. A blank row is a blank line, so that lines have the numbers of rows.
    Cells far apart are refused: a file of 5 kB may have one in each corner of a sheet, which has 17 billion.
    """
    left = width = cells = 0
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, quoting=csv.QUOTE_ALL)
        for number, row in enumerate(islice(rows, MOST_ROWS), start=1):
            cells += len(row)
            if cells > MOST_CELLS:
                raise FileFormatError(f"{path.name} has more than {MOST_CELLS:,} cells, most of them blank. {AS_CSV}.")
            texts = [*map(_read_cell, row)]
            if not any(texts):
                writer.writerow([])
                continue
            if not width:
                left, width = next(at for at, text in enumerate(texts) if text), len(texts)
            if any(texts[:left]):
                raise FileFormatError(f"{path.name}, line {number}, has a cell left of the header: name its column.")
            writer.writerow([*texts[left:], *[""] * (width - len(texts))])
    return width > 0


def _read_cell(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        return str(cell.date())
    return "" if cell is None else str(cell)
