"""Workbooks: what Excel would make of a text, and the limits of a sheet."""

import pytest

from benchbench.errors import FileFormatError
from benchbench.files import workbooks
from benchbench.files.workbooks import write_workbook
from tests.files.workbook_reader import read_workbook

TEXTS = ["007", "1e5", "1-2", "2026-01-02", "1234567890123456789", "=1+1", "+1", "-1", "@x", "'=1", "https://x.example"]
TEXTS += [" 7 ", "Caf\u00e9", "\u82f9\u679c", "TRUE", "a\nb", "\t", "<&>", "\U0001f34e", "[1, 2]"]


def test_texts_stay_texts_and_numbers_numbers():
    numbers = [0, -1, 1.5, 1e-9, 2**53, None]
    rows = read_workbook(
        b"".join(write_workbook([["text", *map(str, range(6))], *([text, *numbers] for text in TEXTS)]))
    )
    assert [row[0] for row in rows] == ["text", *TEXTS]
    assert rows[1][1:] == numbers


def test_values_beyond_a_cell_become_texts():
    long = "x" * 40_000
    [row] = read_workbook(b"".join(write_workbook([[2**53 + 1, True, long, "", {"a": 1}]])))
    assert row == [str(2**53 + 1), "True", f"{long[:32766]}\u2026", None, "{'a': 1}"]


def test_equal_rows_give_equal_bytes():
    assert [*write_workbook([["a", 1]])] == [*write_workbook([["a", 1]])]


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_ROWS", 3)
    assert len(read_workbook(b"".join(write_workbook([["a"]] * 3)))) == 3
    with pytest.raises(FileFormatError, match="A sheet of Excel has only 3 rows: export as CSV"):
        b"".join(write_workbook([["a"]] * 4))
