"""Reading a workbook of Excel by its own text: what each cell is, a text or a number."""

import io
import re
import zipfile
from xml.etree import ElementTree

NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
Cell = str | float | None


def read_workbook(content: bytes) -> list[list[Cell]]:
    """Return the rows of the first sheet, equally long. Raises an error for a formula."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    rows: list[dict[int, Cell]] = []
    for row in sheet.iter(f"{NAMESPACE}row"):
        rows.append({})
        for cell in row.iter(f"{NAMESPACE}c"):
            assert cell.find(f"{NAMESPACE}f") is None, "a formula"
            letters = re.sub(r"\d", "", cell.attrib["r"])
            column = sum(26**index * (ord(letter) - 64) for index, letter in enumerate(reversed(letters))) - 1
            rows[-1][column] = _read(cell)
    width = max(max(row, default=0) for row in rows) + 1
    return [[row.get(column) for column in range(width)] for row in rows]


def _read(cell: ElementTree.Element) -> Cell:
    if cell.attrib.get("t") == "inlineStr":
        return "".join(piece.text or "" for piece in cell.iter(f"{NAMESPACE}t"))
    value = cell.find(f"{NAMESPACE}v")
    return float(value.text or "") if value is not None else None
