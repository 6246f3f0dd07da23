"""Files as people have them: each gives the dataset that they mean, or a sentence with a remedy."""

from pathlib import Path

import pytest

from apps.datasets.formats.registry import FORMATS, read_dataset
from apps.datasets.records import DatasetRecord, check
from tests.datasets.valid import refusal_of

PEAR, APPLE = "What is a pear?", "Äpfel im Süden"
ROWS = [(PEAR, "d1", "3"), (PEAR, "d2", "0"), (APPLE, "d3", "1")]


def write_rows(path: Path, header: str, delimiter: str = ",", encoding: str = "utf-8") -> Path:
    lines = [header, *(delimiter.join(row) for row in ROWS)]
    path.write_bytes("".join(f"{line}\r\n" for line in lines).encode(encoding))
    return path


def grades(record: DatasetRecord) -> dict[str, dict[str, int]]:
    check(record)
    return {
        query.text: {next(iter(one.doc_ref.values())): one.grade for one in query.judgments} for query in record.queries
    }


MEANT = {PEAR: {"d1": 3, "d2": 0}, APPLE: {"d3": 1}}
TABLES = {
    "query,docid,rating": ",",
    "\ufeffquery;docid;rating": ";",
    "sep=;\r\nQuery;Document;Rating": ";",
    "query_text,document_id,grade": ",",
    "Frage\tDokument\tBewertung": "\t",
    "question;doc;label;;": ";",
    "Search Query,URL,Relevance": ",",
    "keyword,file,score": ",",
}


@pytest.mark.parametrize("header", TABLES)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("name", ["judged.csv", "judged.txt"])
def test_tables_with_common_names_of_columns(header, encoding, name, tmp_path):
    if "\ufeff" in header and encoding != "utf-8":
        pytest.skip("The mark is that of UTF-8.")
    record = read_dataset(write_rows(tmp_path / name, header, TABLES[header], encoding), is_upload=True)
    assert grades(record) == MEANT
    assert [query.key for query in record.queries] == [PEAR, APPLE], "a text is its key"
    assert [("Windows-1252" in note, "UTF-16" in note) for note in record.warnings] == (
        [] if encoding == "utf-8" else [(encoding == "cp1252", encoding != "cp1252")]
    )


def test_further_columns_are_left_out_with_a_note(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("Query;Document;Rating;Comment\npear;d1;1;good\npear;d2;0;bad\n")
    record = read_dataset(path, is_upload=True)
    assert record.warnings == ["Columns that are not read: Comment."]
    assert record.columns == {"Query": "query_text", "Document": "document_id", "Rating": "grade", "Comment": ""}
    assert "holds no field: 'Comment'. Use --column FIELD=COLUMN or --ignore-column COLUMN." in refusal_of(path)
    chosen = read_dataset(path, columns={"file_name": "Document"}, ignore=["Comment"])
    assert chosen.queries[0].judgments[0].doc_ref == {"file_name": "d1"}


def test_errors_of_rows_name_the_remedy(tmp_path):
    path = tmp_path / "judged.csv"
    path.write_text("Query;Document;Rating\npear;d1;0,7\n")
    message = refusal_of(path)
    assert 'judged.csv, line 2, has the grade "0,7", which is not an integer.' in message
    assert "Grade factor on the page" in message
    assert read_dataset(path, grade_factor=10).queries[0].judgments[0].grade == 7
    path.write_text("Query;Doc name\npear;d1\n")
    assert "has no column grade, no doc_ref" in refusal_of(path)


def test_every_format_is_read_from_detailed_and_plain_quepid(tmp_path):
    path = tmp_path / "case.csv"
    path.write_text('Team Name,Case Name,Query Text,Doc ID,Rating\nShop,Case,"say ""pear""",d1,3\n')
    assert grades(read_dataset(path, is_upload=True)) == {'say "pear"': {"d1": 3}}
    assert {"table", "quepid-ratings"} <= FORMATS.keys()
