"""Workbooks of spreadsheets: Excel's with one sheet are written, and a sheet is read as CSV.

Written numbers are numbers, all else is text, so 007 stays 007 and no formula runs.
"""

import csv
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.local_files.placing import scratch_folder

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS, MOST_CHARACTERS = 2**20, 32_767  # of a sheet, of a cell
EXACT = 2**53  # a greater whole number loses digits in a cell
BLOCK_BYTES = 2**20
ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")  # of workbooks that are read
ZIP, OLD = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # how they begin
MOST_BYTES = 2**27  # that a workbook may unpack to, because it is read at once
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
        return file.read(4) in (ZIP, OLD)


def copy_sheet(path: Path, target: Path) -> str:
    """Write the first sheet of a workbook that has cells as CSV; return a sentence that names it among several, or "".

    Whole numbers have no decimals, dates are as 2024-01-31, and formulas are the values that were stored. Raises
    FileFormatError.
    """
    from python_calamine import CalamineError, CalamineWorkbook

    _require_size(path)
    try:
        with CalamineWorkbook.from_path(path) as book, target.open("w", encoding="utf-8", newline="") as out:
            names = book.sheet_names
            for name in names:
                sheet = book.get_sheet_by_name(name)
                if sheet.start:
                    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(map(_read_row, sheet.iter_rows()))
                    break
            else:
                raise FileFormatError(f"{path.name} is a workbook without a cell.")
    except CalamineError:
        raise FileFormatError(
            f"{path.name} cannot be read as a workbook: it is damaged, or has a password. {AS_CSV}."
        ) from None
    return f"{path.name} has {len(names)} sheets: only “{name}” was read." if len(names) > 1 else ""


def _require_size(path: Path) -> None:
    """Raise FileFormatError for a packed workbook that is damaged or larger than MOST_BYTES."""
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


def _read_row(cells: Sequence[object]) -> list[str]:
    """Return the texts of a row; none for a blank row, which is a blank line, so that lines have the rows' numbers."""
    row = [str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell) for cell in cells]
    return row if any(row) else []
