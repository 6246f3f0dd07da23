"""Workbooks of Excel with one sheet: numbers are numbers, all else is text, so 007 stays 007 and no formula runs."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from benchbench.errors import FileFormatError
from benchbench.local_files.placing import scratch_folder

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS, MOST_CHARACTERS = 2**20, 32_767  # of a sheet, of a cell
EXACT = 2**53  # a greater whole number loses digits in a cell
BLOCK_BYTES = 2**20
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
