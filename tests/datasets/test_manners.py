"""What readers take and how they refuse it: grades, headers and encodings, the same in every format."""

import codecs
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.collections.sources import open_source
from apps.datasets.formats.reading import detect, read_dataset
from benchbench.errors import BenchbenchError
from benchbench.files.ratings import parse_grade
from benchbench.files.runs import read_run_file
from benchbench.scoring.measuring import read_truth
from tests.datasets.valid import VALID
from tests.files.samples import write_file

GRADES: dict[Any, int | None] = {
    **{"1": 1, "+1": 1, "1 ": 1, " 1": 1, "1.0": 1, "1.": 1, "01": 1, "+1.000 ": 1, "\u00a01": 1, "-0": 0},
    **dict.fromkeys(("1.5", "1e0", "one", "", "1_0", "\uff11", "0x1", "1,0", "1.0.0", "--1", "nan", "1" * 10)),
}


def beir(folder: Path, grade: str) -> Path:
    (folder / "qrels").mkdir()
    write_file(folder / "queries.jsonl", '{"_id": "q1", "text": "red"}\n')
    write_file(folder / "qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq1\td1\t{grade}\n")
    return folder


def trec(folder: Path, grade: str) -> Path:
    write_file(folder / "qrels.txt", f"q1 0 d1 {grade}\n")
    write_file(folder / "topics.txt", "q1\tred\n")
    return write_file(folder / "qrels.txt", f"q1 0 d1 {grade}\n")


def schema1(folder: Path, grade: Any) -> Path:
    judged = [{"doc_ref": {"document_id": "d1"}, "relevance_grade": grade}]
    return write_file(
        folder / "a.json", {"queries": [{"query_key": "q1", "query_text": "red", "relevant_docs": judged}]}
    )


def flowbaby(folder: Path, grade: Any) -> Path:
    write_file(folder / "topics.json", [{"query_id": "q1", "query_text": "red", "slice_ids": []}])
    write_file(folder / "qrels.json", [{"query_id": "q1", "canonical_item_id": "d1", "relevance": grade}])
    return folder


def table(folder: Path, grade: str) -> Path:
    return write_file(folder / "a.csv", f'query_key,query_text,document_id,grade\nq1,red,d1,"{grade}"\n')


def lines(folder: Path, grade: Any) -> Path:
    row = {"query_key": "q1", "query_text": "red", "document_id": "d1", "grade": grade}
    return write_file(folder / "a.jsonl", json.dumps(row) + "\n")


Write = Callable[[Path, Any], Path]
AS_TEXT: dict[str, Write] = {
    "beir": beir,
    "trec": trec,
    "benchbench-json": schema1,
    "flowbaby": flowbaby,
    "table": table,
    "table in lines": lines,
}
AS_NUMBER = {name: AS_TEXT[name] for name in ("benchbench-json", "flowbaby", "table in lines")}


# Tables, which people fill in, may have a decimal comma and words; a document without a grade is left out.
IN_TABLES: dict[Any, int | None] = {"1,0": 1, "": None, "nan": None, True: 1}


def read_grade(name: str, write: Write, folder: Path, grade: Any) -> int:
    options = {"topics": folder / "topics.txt"} if name == "trec" else {}
    [query] = read_dataset(write(folder, grade), format=name.split()[0], **options).queries
    if not query.judgments:
        raise BenchbenchError("No judgment is read.")
    return query.judgments[0].grade


@pytest.mark.parametrize("name", AS_TEXT)
@pytest.mark.parametrize("written", GRADES)
def test_grades_follow_one_rule(name, written, tmp_path):
    expected = GRADES[written]
    assert parse_grade(written) == expected
    if name.startswith("table"):
        expected = IN_TABLES.get(written, expected)
    if expected is None:
        with pytest.raises(BenchbenchError):
            read_grade(name, AS_TEXT[name], tmp_path, written)
    else:
        assert read_grade(name, AS_TEXT[name], tmp_path, written) == expected


@pytest.mark.parametrize("name", AS_NUMBER)
@pytest.mark.parametrize(("value", "expected"), [(1, 1), (1.0, 1), (-0.0, 0), (1.5, None), (True, None), ([1], None)])
def test_numbers_follow_it_too(name, value, expected, tmp_path):
    if name.startswith("table") and value is True:
        expected = IN_TABLES[value]
    if expected is None:
        with pytest.raises(BenchbenchError):
            read_grade(name, AS_NUMBER[name], tmp_path, value)
    else:
        assert read_grade(name, AS_NUMBER[name], tmp_path, value) == expected


HEADERS = {
    "query-id\tcorpus-id\tscore": "q1\td1\t2",
    "query_id\tcorpus_id\tscore": "q1\td1\t2",
    "query-id\tcorpus-id\tscore  ": "q1\td1\t2 ",
    "Query ID\tCorpus ID\tScore\t": "q1\td1\t2\t",
    '"query-id"\t"corpus-id"\t"score"': '"q1"\t"d1"\t"2"',
    "query-id,corpus-id,score": "q1,d1,2",
    '"query_id", "corpus_id", "score"': '"q1","d1",2.0',
    "query-id;corpus-id;score;": "q1;d1;2;",
    "\ufeffquery-id\tcorpus-id\tscore\r": "q1\td1\t2\r",
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("ending", [".tsv", ".csv", ".tsv.gz", ".csv.gz"])
def test_headers_of_beir_as_programs_write_them(tmp_path, header, ending):
    folder = beir(tmp_path, "1")
    (folder / "qrels/test.tsv").unlink()
    content = f"{header}\n{HEADERS[header]}\n".encode()
    path = folder / f"qrels/test{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    [query] = read_dataset(folder).queries
    assert [(judgment.doc_ref, judgment.grade) for judgment in query.judgments] == [({"document_id": "d1"}, 2)]
    assert read_truth(path) == {"q1": {b"d1": 2}}
    with pytest.raises(BenchbenchError, match="holds judgments without texts of queries"):
        detect(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "query-id\tdoc\tscore\nq1\td1\t1\n",
            "test.tsv, line 1, must be the header query-id<TAB>corpus-id<TAB>score, not 'query-id\\tdoc\\tscore'.",
        ),
        ("q1\td1\t1\nq1\td2\n", "must have 3 columns, query, document and grade, as line 1 has, not 'q1\\td2'."),
        ("query-id\tcorpus-id\tscore\nq1\td1\n", "must have three cells, query-id, corpus-id, score, not 'q1\\td1'."),
        ('query-id,corpus-id,score\n"q1,d1,1\n', "test.tsv, line 2, is not CSV: unexpected end of data."),
    ],
)
def test_a_refused_line_is_shown_as_read(tmp_path, content, sentence):
    folder = beir(tmp_path, "1")
    write_file(folder / "qrels/test.tsv", content)
    with pytest.raises(BenchbenchError) as refused:
        read_dataset(folder)
    assert refused.value.message.endswith(sentence)


def test_quotes_of_ids_stay_without_quotes_in_the_header(tmp_path):
    folder = beir(tmp_path, "1")
    write_file(folder / "qrels/test.tsv", 'query-id\tcorpus-id\tscore\nq1\t"d1"\t1\n')
    assert read_dataset(folder).queries[0].judgments[0].doc_ref == {"document_id": '"d1"'}


ENCODINGS = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-8-sig with utf-32": "UTF-32",
    "cp1252": "as in Windows-1252",
    "latin-1": "as in Windows-1252",
    "gb18030": "byte ",
}
SAVE = "Save the file as UTF-8 (spreadsheets call it CSV UTF-8)."


def encode(text: str, encoding: str) -> bytes:
    if encoding == "utf-8-sig with utf-32":
        return codecs.BOM_UTF32_LE + text.encode("utf-32-le")
    return text.encode(encoding, "replace")


PLAIN, MARKED = "ramwqo", "\u00e8\u00e4\u00f1\u00fc\u00e9\u00f6"


def recode(path: Path, encoding: str) -> None:
    """Write the texts below a path in another encoding, with a letter in each word that is not ASCII."""
    words = ["red", "one", "star", "who", "term", "screen", "amsterdam", "q1"]
    for file in [path] if path.is_file() else filter(Path.is_file, path.rglob("*")):
        text = file.read_text()
        for word in words:
            text = text.replace(word, word.translate(str.maketrans(PLAIN, MARKED)))
        file.write_bytes(encode(text, encoding))


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(BenchbenchError) as refused:
        act()
    return refused.value.message


@pytest.mark.parametrize("name", ["table", "quepid-ratings"])
@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name != "gb18030"])
def test_tables_in_another_encoding_give_a_note(name, encoding, tmp_path):
    path = VALID[name](tmp_path)
    plain = read_dataset(path)
    recode(path, encoding)
    record = read_dataset(path)
    assert len(record.queries) == len(plain.queries)
    assert any(character in query.text for query in record.queries for character in MARKED)
    name = ENCODINGS[encoding].removeprefix("as in ")
    assert record.warnings[0].startswith(f"{path.name} is not UTF-8; it was read as {name}")
    assert "line 2 as “" in record.warnings[0]


@pytest.mark.parametrize("text", ["K\u201ese", "K\u0160se", "\u0438\u043d\u0434\u0435\u043a\u0441"])
def test_an_encoding_that_cannot_be_told_is_refused(text, tmp_path):
    encoding = "cp1251" if text > "\u0400" else "cp1252"
    path = tmp_path / "t.csv"
    path.write_bytes(f"query_key,query_text,uri,grade\nq1,{text},u,1\n".encode(encoding))
    assert "line 2, is not UTF-8" in refusal(lambda: read_dataset(path))


@pytest.mark.parametrize("name", ["beir", "benchbench-json", "sectioned"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_another_encoding_is_named_with_the_remedy(name, encoding, tmp_path):
    path = VALID[name](tmp_path)
    recode(path, encoding)
    message = refusal(lambda: read_dataset(path, format=name))
    assert ENCODINGS[encoding] in message
    assert message.endswith(SAVE)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig with utf-32"])
def test_wide_encodings_are_named_by_every_reader(encoding, tmp_path):
    files = {"a.run": "q1 Q0 d1 1 1 t\n", "a.txt": "q1 0 d1 1\n", "corpus.jsonl": '{"_id": "d1", "text": "a"}\n'}
    paths = {name: tmp_path / name for name in files}
    for name, content in files.items():
        paths[name].write_bytes(encode(content, encoding))
    acts = [
        lambda: read_run_file(paths["a.run"], {"q1"}),
        lambda: read_truth(paths["a.txt"]),
        lambda: detect(paths["a.txt"]),
        lambda: list(open_source(paths["corpus.jsonl"]).documents),
    ]
    for act in acts:
        message = refusal(act)
        assert ENCODINGS[encoding] in message
        assert message.endswith(SAVE)
