"""Workbooks of spreadsheets: judged queries, documents and rankings, by the first sheet that has cells."""

import tracemalloc
import zipfile
from datetime import date
from pathlib import Path

import pytest
from xlsxwriter import Workbook

from apps.collections.sources import open_source
from apps.datasets.formats.reading import read_dataset
from benchbench.errors import BenchbenchError
from benchbench.files import workbooks
from benchbench.files.run_tables import read_run
from tests.datasets.valid import refusal_of
from tests.files.samples import write_excel

JUDGED = {"Sheet1": [["query", "path", "grade"], ["plum", "docs/a.md", 2]]}


def list_grades(path: Path) -> dict[str, dict[str, float]]:
    queries = read_dataset(path, is_upload=True).queries
    return {query.text: {next(iter(one.doc_ref.values())): one.grade for one in query.judgments} for query in queries}


def test_cells_are_read_as_they_are_shown(tmp_path):
    header = ["", "Query", "Document", "Rating", "Comment"]
    first = ["", "007; a", 12345678, 2.0, 'a "b",\nc']
    rows = [[], [], header, first, ["", "plum", date(2026, 1, 31), 1, True]]
    book = write_excel(tmp_path / "judged.xlsx", {"Notes": [["", ""]], "Judged": rows, "Old": [["x"]]})
    assert list_grades(book) == {"007; a": {"12345678": 2}, "plum": {"2026-01-31": 1}}
    assert read_dataset(book, is_upload=True).warnings[0] == "judged.xlsx has 3 sheets: only “Judged” was read."
    rows[3][0] = "x"
    refusal = refusal_of(write_excel(book, {"Judged": rows}))
    assert refusal == "judged.xlsx, line 4, has a cell left of the header: name its column."
    rows[2:] = [header[:4], ["", "plum", "d2", "good or bad"]]
    assert refusal_of(write_excel(book, {"Judged": rows})).startswith("judged.xlsx, line 4")


def test_workbooks_in_zips_are_read(tmp_path):
    meant = {"plum": {"docs/a.md": 2}}
    book = write_excel(tmp_path / "judged.xlsx", JUDGED)
    assert read_dataset(book).warnings == []
    with zipfile.ZipFile(tmp_path / "book.zip", "w") as archive:
        archive.write(book, "judged.xlsx")
    assert list_grades(tmp_path / "book.zip") == meant


def test_short_rows_end_with_blank_cells(tmp_path):
    rows = [["query", "doc", "grade", "comment"], ["plum", "d1", 2], ["plum", "d2", 1, "good"]]
    assert list_grades(write_excel(tmp_path / "judged.xlsx", {"A": rows})) == {"plum": {"d1": 2, "d2": 1}}


def test_documents_and_rankings_are_read_from_workbooks(tmp_path):
    rows = [["id", "title", "text"], ["d1", "Pear", "A pear."], [2, "Plum", "A plum."]]
    documents = [*open_source(write_excel(tmp_path / "corpus.xlsx", {"A": rows})).documents]
    assert [(one.external_id, one.title, one.text) for one in documents] == [(str(id), *row) for id, *row in rows[1:]]
    with pytest.raises(BenchbenchError, match=r"judged.xlsx holds judged queries, not documents"):
        open_source(write_excel(tmp_path / "judged.xlsx", JUDGED))
    ranked = write_excel(tmp_path / "run.xlsx", {"A": [["query", "doc", "score"], ["q1", "d1", 0.5], ["q1", 2, 0.25]]})
    entries = read_run(ranked, ["q1"]).entries
    assert [(entry.canonical_item_id, entry.score) for entry in entries] == [("d1", 0.5), ("2", 0.25)]


def test_workbooks_that_cannot_be_read_are_refused(tmp_path, monkeypatch):
    book = tmp_path / "judged.xlsx"
    for content in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0" + bytes(600)):
        book.write_bytes(content)
        assert refusal_of(book) == (
            "judged.xlsx cannot be read as a workbook: it is damaged, or has a password. Save its sheet as CSV UTF-8, "
            "and use that."
        )
    assert refusal_of(write_excel(book, {"A": [], "B": []})) == "judged.xlsx is a workbook without a cell."
    content = write_excel(book, JUDGED).read_bytes()
    middle = content.index(b"PK\x03\x04", 4) - 20
    book.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    assert refusal_of(book) == "judged.xlsx is damaged. Save it again."
    renamed = tmp_path / "judged.csv"
    renamed.write_bytes(content)
    assert refusal_of(renamed) == "judged.csv is a workbook: save it as .xlsx."
    monkeypatch.setattr(workbooks, "MOST_BYTES", 100)
    refusal = refusal_of(write_excel(book, JUDGED))
    assert refusal == "judged.xlsx unpacks to more than 100 bytes. Save its sheet as CSV UTF-8, and use that."


def test_small_workbooks_of_far_cells_take_no_memory(tmp_path):
    book = Workbook(str(tmp_path / "far.xlsx"))
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ["query", "doc", "grade"])
    for row in (1, 5_000):
        sheet.write(row, 2**14 - 1, 1)
    book.close()
    assert (tmp_path / "far.xlsx").stat().st_size < 10_000
    tracemalloc.start()
    with pytest.raises(BenchbenchError, match=r"far.xlsx, line 2, has 16384 cells, but the header has 3"):
        read_dataset(tmp_path / "far.xlsx")
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


@pytest.mark.parametrize(("row", "refusal"), [(3, "has more than 6 cells, most of them"), (10**9, "500,000 lines")])
def test_rows_with_any_number_end(row, refusal, tmp_path, monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_CELLS", 6)
    book = write_excel(tmp_path / "judged.xlsx", {"A": [*JUDGED["Sheet1"], ["pear", "d2", 1]]})
    with zipfile.ZipFile(book) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(book, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content.replace(b'r="3"', b'r="%d"' % row))
    with pytest.raises(BenchbenchError, match=refusal):
        read_dataset(book, is_upload=True)
