"""Documents in tables as other people write them: what they mean, said by name, or a sentence with a remedy."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apps.collections.importing import import_collection
from apps.collections.models import Collection
from apps.collections.sources import open_source
from apps.collections.tables import NUMBERED
from apps.datasets.formats.reading import read_dataset
from benchbench.errors import BenchbenchError
from tests.files.samples import write_file


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def read(path: Path) -> tuple[list[tuple[Any, ...]], list[str]]:
    source = open_source(path)
    documents = [(d.external_id, d.title, d.text, d.uri, d.metadata) for d in source.documents]
    return documents, [*source.reading.notes, *source.reading.warnings]


PEAR = ("1", "Pear", "A green fruit.", "", {})
PEARS: dict[str, tuple[str, str | bytes]] = {
    "a catalogue": ("shop.csv", "sku,product_name,description\n1,Pear,A green fruit.\n"),
    "a German sheet": ("obst.csv", "Artikelnummer;Bezeichnung;Beschreibung\r\n1;Pear;A green fruit.\r\n"),
    "tabs": ("a.tsv", "id\ttitle\ttext\n1\tPear\tA green fruit.\n"),
    "UTF-16": ("a.csv", "id;title;text\n1;Pear;A green fruit.\n".encode("utf-16")),
    "marks and quotes": ("a.csv", '\ufeff"id","title","text"\n"1","Pear","A green fruit."\n'),
    "Pyserini": ("a.jsonl", lines({"id": "1", "title": "Pear", "contents": "A green fruit."})),
    "Tevatron": ("a.jsonl", lines({"docid": "1", "title": "Pear", "text": "A green fruit."})),
    "numbers as ids": ("a.jsonl", lines({"id": 1, "title": "Pear", "text": "A green fruit."})),
    "a dump": ("a.json", lines({"_index": "i", "_id": "1", "_source": {"title": "Pear", "body": "A green fruit."}})),
    "bulk": ("a.ndjson", lines({"index": {"_id": "1"}}, {"title": "Pear", "text": "A green fruit."})),
    "a list": ("a.json", json.dumps([{"id": "1", "name": "Pear", "content": "A green fruit."}], indent=1)),
    "a wrapped list": ("a.json", json.dumps({"count": 1, "items": [{"id": "1", "title": "Pear", "body": PEAR[2]}]})),
    "lists of texts": ("a.json", json.dumps([{"id": "1", "title": ["Pear"], "text": ["A green fruit."]}])),
}


@pytest.mark.parametrize("packed", ["", "gz", "zip"])
@pytest.mark.parametrize("name", PEARS)
def test_tables_of_many_programs_are_read(name: str, packed: str, tmp_path: Path) -> None:
    file_name, content = PEARS[name]
    raw = content.encode() if isinstance(content, str) else content
    path = tmp_path / file_name
    if packed == "gz":
        path = tmp_path / f"{file_name}.gz"
        raw = gzip.compress(raw)
    path.write_bytes(raw)
    if packed == "zip":
        path = tmp_path / "folder"
        (path / "inner").mkdir(parents=True)
        (tmp_path / file_name).rename(path / "inner" / file_name)
    documents, notes = read(path)
    assert documents == [PEAR]
    assert "the text is its column “" in notes[0]


def test_further_columns_are_metadata_and_are_said(tmp_path: Path) -> None:
    rows = lines(
        {"url": "https://example.org/1", "abstract": "Short.", "text": "Long.", "price": 2, "tags": ["a", 7]},
        {
            "url": "https://example.org/2",
            "headline": "Two",
            "text": "Long.",
            "vector": [0.1, 0.2],
            "metadata": {"a": 1},
        },
    )
    documents, notes = read(write_file(tmp_path / "a.jsonl", rows))
    first, second = "https://example.org/1", "https://example.org/2"
    assert documents == [
        (first, "", "Long.", first, {"abstract": "Short.", "price": 2, "tags": ["a", 7]}),
        (second, "Two", "Long.", second, {"a": 1}),
    ]
    columns = {"id": "url", "text": "text", "uri": "url", "title": "headline"}
    assert notes == [
        "a.jsonl: " + ", ".join(f"the {field} is its column “{column}”" for field, column in columns.items()) + ".",
        "Metadata, which are not searched: abstract, price, tags.",
        "Not read: vector.",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "Question;Answer;Nr\nHow?;So;7\n",
            "a.csv, line 2 has no column of the documents' ids: it has Question, ",
        ),
        (
            "a.csv",
            "id,title,extract\n1,Pear,Green\n",
            "has no column of the documents' texts: it has id, title, extract",
        ),
        (
            "a.jsonl",
            lines({"id": "1", "text": "x"}, {"id": "2", "title": "Pear", "author": "Ann"}),
            "a.jsonl, line 2 has",
        ),
        ("a.jsonl", lines({"id": {"$uuid": "5f"}, "text": "x"}), "a.jsonl, line 1 has no text in 'id'"),
        (
            "a.jsonl",
            lines({"id": "1", "text": "x"}, {"text": "y"}),
            "a.jsonl, line 2 has no column of the documents' ids",
        ),
        (
            "a.jsonl",
            lines({"text": "x"}, {"id": "1", "text": "y"}),
            "a.jsonl, line 2 has an id, which rows before it lack",
        ),
        (
            "a.csv",
            "id,Text (en),Text (de)\n1,Pear,Birne\n",
            "The text may be in “Text (en)” or “Text (de)”: choose one under Columns",
        ),
        ("a.jsonl", lines({"id": ["1", "2"], "text": "x"}), "a.jsonl, line 1 has several ids in 'id': give it one."),
        (
            "collection.tsv",
            "A green fruit\t7\nA plum\t8\n",
            "line 1, begins with a text, not with an id: choose both under Columns",
        ),
        (
            "a.tsv",
            'id\ttext\n1\t"Pear\n2\tPlum"\n',
            "a.tsv, line 2, has a cell that takes in the rows below: close its",
        ),
        ("a.json", json.dumps(["one text"]), "a.json[0] is a string, and each entry must be an object."),
        ("a.csv", "id,text\n1\n", "a.csv, line 2, has 1 cells, but the header has 2."),
        ("a.txt", "one text\n", "Put texts and pages into a folder, as a .zip to upload them"),
        ("a.tsv", "1\tpear\n2\tplum\n", "import those as a dataset. If they are documents, name the columns in the"),
        (
            "a.csv",
            "query,doc,grade\npear,d1,2\n",
            "a.csv holds judged queries, not documents: import those as a dataset.",
        ),
    ],
)
def test_other_tables_are_refused_with_a_remedy(name: str, content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BenchbenchError) as refused:
        read(write_file(tmp_path / name, content))
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        ("id,Text,text,ID\n1,Draft,Final,9\n", [("1", "", "Final", "", {"Text": "Draft", "ID": "9"})]),
        ("docid,pid,passage\nd,1,a\nd,2,b\n", [(n, "", t, "", {"docid": "d"}) for n, t in (("1", "a"), ("2", "b"))]),
        (",doc_id,text\n0,1,Pear\n", [("1", "", "Pear", "", {})]),
        ("text,#,sku\nPear,7,1\n", [("1", "", "Pear", "", {"#": "7"})]),
    ],
    ids=["spelt exactly", "passages", "row numbers without name", "row numbers"],
)
def test_column_is_chosen_by_its_name(content: str, documents: list[object], tmp_path: Path) -> None:
    assert read(write_file(tmp_path / "a.csv", content))[0] == documents


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (
            [{"id": "1", "summary": "Short.", "article": "The long text of a document.", "genre": "news"}],
            "More is in “article” than in the text, but is not searched: if that is the text, choose it "
            "under Columns, or call its column text.",
        ),
        (
            [{"id": "1", "body": "x"}, {"id": "2", "summary": "y"}],
            "a.jsonl: the id is its column “id”, the text is its column “body” or “summary”.",
        ),
        (
            [{"id": "1", "text": "<p>Pear</p>"}],
            "1 text with HTML, whose tags are searched like words: write only the texts.",
        ),
        ([{"title": "Pear", "text": "x"}], NUMBERED),
        ([{"": 0, "id": "1", "text": "x"}], "Not read: a column without a name."),
        ([{"id": "1.23E+12", "text": "x"}], "Ids that a spreadsheet seems to have changed: 1.23E+12."),
        ([{"id": "1 ", "text": "x"}], "Ids that begin or end with white space, which is a part of them: '1 '."),
    ],
)
def test_notes_warn_of_what_may_be_wrong(rows: list[object], note: str, tmp_path: Path) -> None:
    assert note in read(write_file(tmp_path / "a.jsonl", lines(*rows)))[1]


@pytest.mark.parametrize("about", ["README.md", "Read me.txt", "LICENSE", "._docs.csv"])
def test_table_beside_its_readme_is_read(about: str, tmp_path: Path) -> None:
    write_file(tmp_path / "docs.csv", "id,title,text\n1,Pear,A green fruit.\n")
    write_file(tmp_path / about, "About the fruit.")
    assert read(tmp_path)[0] == [PEAR]


def test_several_tables_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write_file(tmp_path / name, "id,text\n1,Pear\n")
    with pytest.raises(BenchbenchError, match=r"holds several tables: a\.csv, b\.csv\. Write their rows into one\."):
        read(tmp_path)


@pytest.mark.django_db
def test_repeated_ids_name_their_column(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", "product_id,text\nP,Good\nP,Bad\n")
    with pytest.raises(BenchbenchError, match=r"The document 'P' \(a\.csv, line 3, id in 'product_id'\) occurs before"):
        import_collection(open_source(path), name="reviews")


@pytest.mark.parametrize("name", ["collection.tsv", "a.tsv"])
def test_long_or_named_pairs_are_documents(name: str, tmp_path: Path) -> None:
    text = "A green fruit of the tree. " * (1 if name == "collection.tsv" else 20)
    documents, _ = read(write_file(tmp_path / name, f"7\t{text}\n8\t{text}\n"))
    assert [(key, body.strip()) for key, _, body, *_ in documents] == [("7", text.strip()), ("8", text.strip())]


@pytest.mark.parametrize("grade", ["rating", "score", "note"])
def test_products_with_ratings_are_documents(grade: str, tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.csv", f"sku,title,description,{grade}\n1,Pear,A green fruit.,4\n")
    assert read(path)[0] == [(*PEAR[:4], {grade: "4"})]
    with pytest.raises(BenchbenchError):
        read_dataset(path, is_upload=True)


@pytest.mark.django_db
def test_commands_say_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import call_command

    path = write_file(tmp_path / "shop.csv", "sku,product_name,description,price\n1,Pear,A green fruit.,2\n")
    call_command("import_collection", str(path), name="shop")
    output = capsys.readouterr().err
    assert "the text is its column “description”" in output
    assert "Metadata, which are not searched: price." in output
    assert Collection.objects.get().documents.get().text == "A green fruit."


def test_judged_queries_among_documents_are_refused(tmp_path: Path) -> None:
    write_file(tmp_path / "docs.csv", "id,text\n1,Pear\n")
    write_file(tmp_path / "judged.csv", "query,doc,grade\npear,1,2\n")
    with pytest.raises(BenchbenchError, match=r"judged\.csv holds judged queries, not documents"):
        read(tmp_path)
