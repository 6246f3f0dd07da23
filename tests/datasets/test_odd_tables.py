"""Tables as other people write them: what they mean, with a note where it is not said, or a sentence with a remedy."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.formats.reading import read_dataset
from apps.datasets.importing import list_warnings
from apps.datasets.records import DatasetRecord, check
from benchbench.errors import BenchbenchError
from benchbench.files.sniffing import describe_judged
from tests.datasets.valid import refusal_of
from tests.files.samples import write_file


def read(path: Path, **options: Any) -> DatasetRecord:
    record = read_dataset(path, is_upload=True, **options)
    check(record)
    return record


def grades(record: DatasetRecord) -> dict[str, dict[str, int]]:
    return {q.text: {next(iter(j.doc_ref.values())): j.grade for j in q.judgments} for q in record.queries}


HEADERS = [
    *(
        "requête;document;note",
        "Consulta;ID documento;Puntuación",
        "domanda;documento;voto",
        "vraag;document;relevantie",
    ),
    *(
        "consulta;documento;relevância",
        "クエリ;文書;評価",
        "查询;文档;评分",
        "질의;문서;평점",
        "запрос;документ;оценка",
    ),
    *("Query (a, b, c);Doc ID;Relevance (0=bad, 3=perfect)", "Search term;Result;is_relevant", "Frage;Quelle;Note"),
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_headers_and_lines_of_many_programs(header, delimiter, end, tmp_path):
    rows = [header.replace(";", delimiter), delimiter.join(["pear", "d1", "2,0"]), delimiter.join(["plum", "d2", "1"])]
    path = tmp_path / "a.csv"
    path.write_bytes((end.join(rows) + end).encode())
    assert grades(read(path)) == {"pear": {"d1": 2}, "plum": {"d2": 1}}


WORDS: dict[str, dict[str, int]] = {
    "relevant|not relevant": {"d0": 1, "d1": 0},
    "Relevant|Not relevant|Partially relevant": {"d0": 2, "d1": 0, "d2": 1},
    "ja|nein": {"d0": 1, "d1": 0},
    "VRAI|FAUX": {"d0": 1, "d1": 0},
    "TRUE|": {"d0": 1},
    "Perfect|Excellent|Good|Fair|Bad": {"d0": 4, "d1": 3, "d2": 2, "d3": 1, "d4": 0},
    "A|B|D": {"d0": 3, "d1": 2, "d2": 0},
    "★★★|★☆☆|☆☆☆": {"d0": 3, "d1": 1, "d2": 0},
    "Exact|Substitute|Complement|Irrelevant": {"d0": 3, "d1": 2, "d2": 1, "d3": 0},
}


@pytest.mark.parametrize("header", ["query;document;grade", "query;docid;rating"])
@pytest.mark.parametrize("words", WORDS)
def test_grades_in_words_are_read_with_a_note(words, header, tmp_path):
    rows = "".join(f"pear;d{number};{word}\n" for number, word in enumerate(words.split("|")))
    record = read(write_file(tmp_path / "a.csv", f"{header}\n{rows}"))
    assert grades(record) == {"pear": WORDS[words]}
    assert record.warnings[0].startswith("a.csv has grades in words, read as ")
    left_out = [warning for warning in record.warnings if "Left out: 1 document without" in warning]
    assert bool(left_out) == words.endswith("|")


@pytest.mark.parametrize("words", ["high|low", "yes|2", "2|yes", "2/3|1/3", "Perfect|ja", "E|S", "+|2", "A|B", "☆☆|☆"])
@pytest.mark.parametrize("header", ["query;document;grade", "query;docid;rating"])
def test_words_of_no_scale_are_refused(words, header, tmp_path):
    rows = "".join(f"pear;d{number};{word}\n" for number, word in enumerate(words.split("|")))
    sentence = refusal_of(write_file(tmp_path / "a.csv", f"{header}\n{rows}"))
    assert "Write whole numbers" in sentence or "write whole numbers" in sentence


def test_documents_without_a_grade_are_left_out(tmp_path):
    record = read(write_file(tmp_path / "a.csv", "query;document;grade\np;a;85%\np;b;n/a\np;c;\np;d;NULL\np;e;-1\n"))
    assert grades(record) == {"p": {"a": 85, "e": -1}}
    assert record.warnings == ["Left out: 3 documents without a grade."]


SEVERAL: dict[str, str] = {
    "numbered.csv": "query,doc1,doc2,doc3\npear,d1,d2,\nplum,d3,,\n",
    "pipes.csv": "query,docs\npear,d1|d2\nplum,d3\n",
    "commas.csv": 'query,relevant_docs\npear,"d1, d2"\nplum,d3\n',
    "lists.csv": "query;doc_ids\npear;['d1', 'd2']\nplum;[\"d3\"]\n",
    "rows.csv": "query,document\npear,d1\npear,d2\nplum,d3\n",
    "lists.json": json.dumps(
        [{"question": "pear", "relevant_docs": ["d1", "d2"]}, {"question": "plum", "relevant_docs": ["d3"]}]
    ),
    "wrapped.json": json.dumps({"made": "2026", "questions": [{"query": "pear", "documents": ["d1", "d2"]}]}),
    "keyed.json": json.dumps({"pear": ["d1", "d2"], "plum": "d3"}),
    "graded.json": json.dumps({"pear": {"d1": 1, "d2": 1}, "plum": {"d3": 1}}, indent=1),
    "llama.json": json.dumps(
        {"queries": {"1": "pear", "2": "plum"}, "corpus": {}, "relevant_docs": {"1": ["d1", "d2"], "2": ["d3"]}},
        indent=1,
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_row_may_have_several_documents(name, tmp_path):
    record = read(write_file(tmp_path / name, SEVERAL[name]))
    meant = {"pear": {"d1": 1, "d2": 1}, "plum": {"d3": 1}}
    assert grades(record) == (meant if name != "wrapped.json" else {"pear": meant["pear"]})
    implied = "has no column of grades: each document counts as relevant, with grade 1."
    implied = f"{name} has no grades: each document" if name == "keyed.json" else implied
    assert any(implied in warning for warning in record.warnings) == (name[:4] not in ("grad", "llam"))


@pytest.mark.parametrize("column", ["docs", "documents", "sources", "urls", "gold_docs", "expected_docs"])
def test_columns_beside_a_document_add_none(column, tmp_path):
    path = write_file(tmp_path / "a.csv", f"qid,query,doc_id,grade,{column}\n1,pear,d1,2,d7\n")
    assert grades(read(path)) == {"pear": {"d1": 2}}
    assert f"Columns that are not read: {column}." in read(path).warnings
    assert grades(read(path, columns={"documents": column})) == {"pear": {"d7": 2}}


@pytest.mark.parametrize("grade", ["relevant", "judgment", "is_relevant", "Bewertung", "correct", "relevancia"])
@pytest.mark.parametrize("column", ["score", "note", "label"])
def test_scores_and_notes_beside_grades_are_none(column, grade, tmp_path):
    path = write_file(tmp_path / "a.csv", f"query,document,{column},{grade}\npear,d1,17,1\npear,d2,20,0\n")
    assert grades(read(path)) == {"pear": {"d1": 1, "d2": 0}}


def test_answers_that_differ_are_refused_with_a_remedy(tmp_path):
    path = write_file(tmp_path / "a.csv", "query,document,grade,answer\npear,d1,1,a\npear,d2,0,b\n")
    assert "Leave the column out, under Columns." in refusal_of(path)
    assert grades(read(path, ignore=["answer"])) == {"pear": {"d1": 1, "d2": 0}}


@pytest.mark.parametrize("key", ["grade", "rating"])
def test_grades_of_later_lines_are_not_ignored(key, tmp_path):
    lines = [{"query": "pear", "document": "d1"}, {"query": "pear", "document": "d2", key: 0}]
    path = write_file(tmp_path / "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert "line 2" in refusal_of(path)


def test_grades_by_document_are_not_implied(tmp_path):
    rows = [{"query": "pear", "documents": {"d1": 2, "d2": None}}]
    record = read(write_file(tmp_path / "a.json", json.dumps(rows)))
    assert grades(record) == {"pear": {"d1": 2}}
    assert record.warnings == ["Left out: 1 document without a grade."]


@pytest.mark.parametrize("cell", ['["a, b", "c"]', "['a, b', 'c']", "['a, b',\n 'c']"])
def test_commas_in_quoted_ids_divide_none(cell, tmp_path):
    doubled = cell.replace('"', '""')
    assert grades(read(write_file(tmp_path / "a.csv", f'query,docs\np,"{doubled}"\n'))) == {"p": {"a, b": 1, "c": 1}}


def test_divided_cells_are_noted(tmp_path):
    record = read(write_file(tmp_path / "a.csv", 'query,docs\npear,"Smith, J."\n'))
    assert "Read as several documents: 1 cell, such as 'Smith, J.'." in record.warnings


@pytest.mark.parametrize("reference", ["doc_id", "title", "url"])
def test_documents_with_texts_are_no_queries(reference, tmp_path):
    path = write_file(tmp_path / "a.csv", f"{reference},text\nd1,pears are fruit\n")
    assert "seems to hold documents with their texts" in refusal_of(path)
    assert grades(read(path, columns={"query_text": "text"})) == {"pears are fruit": {"d1": 1}}
    write_file(path, f"qid,{reference},text,grade\n1,d1,pears are fruit,1\n")
    assert "a.csv: its column 'text' is read as the texts of queries." in read(path).warnings


JUDGED = {
    "id,title,text,note\n1,a,b,3\n": "",
    '{"doc_id": "1", "text": "a", "score": 1}\n': "",
    '{"tags": ["a"]}': "",
    "qid,text,docid,grade\n1,a,b,3\n": "judged queries",
    '{"queries": {"1": "a"}, "relevant_docs": {"1": ["b"]}}': "judged queries",
    "query,document,note\na,b,3\n": "judged queries",
}


@pytest.mark.parametrize("content", JUDGED)
def test_files_beside_documents_may_have_notes_and_tags(content, tmp_path):
    assert describe_judged(write_file(tmp_path / "a.txt", content)) == JUDGED[content]


def test_queries_in_metadata_are_no_keyed_file(tmp_path):
    queries = [{"query_id": "1", "query": "pear", "relevant_docs": ["d1"]}]
    content = {"schema_version": "1.0", "metadata": {"queries": {"number": 1}}, "queries": queries}
    assert grades(read(write_file(tmp_path / "a.json", json.dumps(content)))) == {"pear": {"d1": 2}}


def test_unread_columns_may_be_the_grades(tmp_path):
    path = write_file(tmp_path / "a.csv", "query,doc1,doc2,wertung\npear,d1,d2,3\n")
    assert "has no column grade: it has query, doc1, doc2, wertung" in refusal_of(path)
    with pytest.raises(BenchbenchError, match="has no column grade"):  # pages ignore columns without a choice
        read(path, ignore=["wertung"])


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_table_without_a_header_loses_no_row(name, tmp_path):
    delimiter = "\t" if name.endswith("tsv") else ","
    rows = [["red pear", "d1", "2"], ["plum", "d2", "1"]]
    path = write_file(tmp_path / name, "".join(delimiter.join(row) + "\n" for row in rows))
    assert "its first line, without names of columns, is 'red pear, d1, 2'" in refusal_of(path)
    columns = {"query_text": "column 1", "document_id": "column 2", "grade": "column 3"}
    assert grades(read(path, columns=columns)) == {"red pear": {"d1": 2}, "plum": {"d2": 1}}


OLD = {"mac_roman": ["não é", "cœur à l'été"], "cp850": ["coração", "corazón", "dîner"], "cp1250": ["święta książka"]}


@pytest.mark.parametrize(("encoding", "text"), [(encoding, text) for encoding, texts in OLD.items() for text in texts])
def test_short_texts_of_old_programs_are_refused(encoding, text, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(f"query,document,grade\n{text},d1,1\n".encode(encoding))
    assert "is not UTF-8" in refusal_of(path)
    path.write_bytes(f"query,document,grade\n{text.translate(PLAIN_LETTERS)},d1,1\n".encode("cp1252"))
    assert text.translate(PLAIN_LETTERS) in grades(read(path))


PLAIN_LETTERS = str.maketrans("śąęż", "saez")
ODD: dict[str, tuple[str, str]] = {
    "a title": (
        "Judged in May;;\n;;\nQuery;Document;Grade\npear;d1;2\n",
        "line 3, has the names of columns, so it must",
    ),
    "totals": ("query,document,grade\npear,d1,2\nTotal,,2\n", "line 3, doc_ref is empty: give any of document_id, uri"),
    "merged cells": ("query,document,grade\npear,d1,2\n,d2,1\n", "has no query_text. Write it in each row, also where"),
    "a misspelt word": (
        "query,document,grade\npear,d1,relevnt\nplum,d2,not relevant\n",
        'line 2, has the grade "relevnt", which is not an integer. Write whole numbers, a higher one where more is '
        "relevant, or in all rows words of one scale, such as relevant and not relevant",
    ),
    "two headers": ("query,document,grade\n(text),(id),(0-3)\npear,d1,2\n", "remove lines without a judgment"),
    "only a header": ("query,document,grade\n", "a.csv has a header and no rows: add a row for each judgment."),
    "only Quepid's header": ("query,docid,rating\n", "a.csv has a header and no rows: add a row for each rating."),
    "only a mark": ("\ufeff", "a.csv is empty."),
    "only texts": ('[{"question": "a?", "answer": "b", "context": "c"}]', "a.csv has no column grade, no doc_ref"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_rows_are_refused_with_a_remedy(name, tmp_path):
    content, sentence = ODD[name]
    assert sentence in refusal_of(write_file(tmp_path / "a.csv", content))


def pack(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


PLAIN = "query,document,grade\npear,d1,1\n"
BINARIES: dict[str, tuple[bytes, str]] = {
    "a.pdf": (b"%PDF-1.4\n%\xe2\xe3", "is a PDF, which is not read: save its text as .txt, .md or .html"),
    "sheet.csv": (pack({"xl/workbook.xml": "<x/>"}), "is a workbook: save it as .xlsx."),
    "old.csv": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a file of old Office: save a workbook as .xlsx"),
    "a.docx": (pack({"word/document.xml": "<x/>"}), "is a Word document, which is not read"),
    "packed.csv": (gzip.compress(PLAIN.encode()), "is packed with gzip: end its name in .gz."),
    "zipped.csv": (pack({"a.csv": PLAIN}), "is a zip: end its name in .zip."),
    "a.7z": (b"7z\xbc\xaf\x27\x1c", "is a 7z archive: pack it as .zip."),
    "a.parquet": (b"PAR1\x15", "is a Parquet file: save it as CSV or JSON Lines."),
    "a.zip": (pack({"a.docx": "x", "b.pdf": "%PDF-1"}), "b.pdf is a PDF, which is not read"),
}


@pytest.mark.parametrize("name", BINARIES)
def test_files_of_programs_are_refused_by_kind(name, tmp_path):
    content, sentence = BINARIES[name]
    (tmp_path / name).write_bytes(content)
    assert sentence in refusal_of(tmp_path / name)


def test_upper_endings_and_long_cells_are_read(tmp_path):
    (tmp_path / "A.ZIP").write_bytes(pack({"A.CSV": PLAIN}))
    write_file(tmp_path / "A.JSON", json.dumps([{"query": "pear", "document": "d1", "grade": 1}]))
    write_file(tmp_path / "long.csv", f"query,document,grade,remark\npear,d1,1,{'x' * 200_000}\n")
    for name in ("A.ZIP", "A.JSON", "long.csv"):
        assert grades(read(tmp_path / name)) == {"pear": {"d1": 1}}


TOPICS = "q1\tpear\nq2\tplum\n"
QRELS = ["q1 d1 1\nq2 d2 0\n", "q1\td1\t1\nq2\td2\t0\n", "q1\t0\td1\t1\nq2\t0\td2\t0\n"]


@pytest.mark.parametrize("qrels", QRELS)
def test_judgments_without_header_join_their_queries(qrels, tmp_path):
    paths = [write_file(tmp_path / "topics.tsv", TOPICS), write_file(tmp_path / "qrels.tsv", qrels)]
    assert grades(read_dataset(paths)) == {"pear": {"d1": 1}, "plum": {"d2": 0}}
    (tmp_path / "beir/qrels").mkdir(parents=True)
    write_file(tmp_path / "beir/queries.jsonl", '{"_id": "q1", "text": "pear"}\n{"_id": "q2", "text": "plum"}\n')
    write_file(tmp_path / "beir/qrels/test.tsv", qrels)
    assert grades(read_dataset(tmp_path / "beir")) == {"pear": {"d1": 1}, "plum": {"d2": 0}}


def test_ranks_without_header_are_no_grades(tmp_path):
    ranks = "q1\td1\t1\nq1\td2\t2\nq1\td3\t3\nq2\td1\t1\n"
    paths = [write_file(tmp_path / "topics.tsv", TOPICS), write_file(tmp_path / "run.tsv", ranks)]
    assert "run.tsv seems to be a run: the numbers of each query are 1, 2, 3" in refusal_of(paths)
    write_file(paths[1], f"query-id\tcorpus-id\tscore\n{ranks}")
    assert grades(read_dataset(paths))["pear"] == {"d1": 1, "d2": 2, "d3": 3}


@pytest.mark.parametrize("judged", ["query,doc,label\n1,d1,2\n", "query,docid,rating\n1,d1,2\n", '{"1": {"d1": 2}}'])
def test_ids_of_queries_are_not_their_texts(judged, tmp_path):
    paths = [write_file(tmp_path / "texts.csv", "id,text\n1,pear\n"), write_file(tmp_path / "judged", judged)]
    assert grades(read_dataset(paths)) == {"pear": {"d1": 2}}
    assert any("Queries whose text looks like an id: if it is one" in each for each in list_warnings(read(paths[1])))


def test_unrecognised_file_is_named_with_a_remedy(tmp_path):
    paths = [write_file(tmp_path / "topics.tsv", TOPICS), write_file(tmp_path / "qrels.txt", "q1 0 my d1.txt 1\n")]
    sentence = refusal_of(paths)
    assert 'qrels.txt is not recognised: it begins "q1 0 my d1.txt 1". topics.tsv is queries.' in sentence
    assert "one of judgments a query's id, a document and a grade" in sentence
    write_file(paths[1], "001 0 d1 1\n")
    assert (
        refusal_of(paths)
        == "qrels.txt judges the query '001', which topics.tsv does not have: it has 'q1', for example."
    )


def test_old_topics_of_trec_keep_their_numbers(tmp_path):
    topics = (
        "<top>\n<head> Tipster\n<num> Number:  051\n<dom> Domain:  Economics\n<title> Topic:  Airbus\n<desc> x\n</top>"
    )
    paths = [write_file(tmp_path / "topics.txt", topics), write_file(tmp_path / "qrels.txt", "051 0 d1 1\n")]
    assert grades(read_dataset(paths)) == {"Airbus": {"d1": 1}}


SEVERAL_IDS = "Ids that seem to be of several documents: call their column documents, or choose that under Columns"
SUSPECT: dict[str, str] = {
    "kÃ¤se,d1,1\n": "Texts that seem to have lost letters: save the file as UTF-8: kÃ¤se.",
    "pear,1.23E+15,1\n": "Ids that a spreadsheet seems to have changed: 1.23E+15.",
    "pear,a|b,1\n": f"{SEVERAL_IDS}: a|b.",
    'pear,"a,b",1\npear,a,1\n': f"{SEVERAL_IDS}: a,b.",
    "pear,d1,1\nTotal,12,1\n": "The last query seems to be a row of totals: Total.",
    "pear,d1,1\nPear,d2,1\n": "Texts that several queries have, each measured by its own judgments: pear.",
    "pear,d1,5\npear,d2,1\n": "Grades go from 1 to 5, and each above 0 counts as relevant in P, R, RR and AP. If low "
    "ones mean not relevant, lower them in the file, or measure P(rel=3)@10, for example. A lower grade never means a "
    "better document.",
}


@pytest.mark.parametrize("rows", SUSPECT)
def test_suspect_content_is_noted(rows, tmp_path):
    assert SUSPECT[rows] in list_warnings(read(write_file(tmp_path / "a.csv", f"query,document,grade\n{rows}")))
    assert not list_warnings(read(write_file(tmp_path / "b.csv", "query,document,grade\npear,d1,2\npear,d2,0\n")))


NESTED: dict[str, dict[str, Any]] = {
    "passages": {"query": "pear", "positive_passages": [{"docid": "d1", "text": "x"}], "negative_passages": [{}]},
    "grades": {"query": "pear", "retrieval_ground_truth": [{"document_id": "d1", "query_relevance_label": 1}]},
    "ids": {"query": "pear", "relevant_docs": [{"id": "d1"}], "comment": "good"},
}


@pytest.mark.parametrize("name", NESTED)
def test_documents_may_be_objects_in_a_list(name, tmp_path):
    record = read(write_file(tmp_path / "a.jsonl", json.dumps(NESTED[name]) + "\n"))
    assert grades(record) == {"pear": {"d1": 1}}


def test_grades_of_listed_objects_count(tmp_path):
    listed = [{"doc_id": "d1", "rating": 3}, {"doc_id": "d2", "rating": "0"}, {"doc_id": "d3", "rating": None}]
    path = write_file(tmp_path / "a.json", json.dumps([{"query": "pear", "docs": listed}]))
    assert [(j.doc_ref, j.grade) for j in read(path).queries[0].judgments] == [
        ({"document_id": "d1"}, 3),
        ({"document_id": "d2"}, 0),
    ]


def test_tables_of_markdown_are_read(tmp_path):
    table = "| query | doc | grade |\n|:------|:---:|------:|\n| pear | d1 | 2 |\n| plum | d2 | 1 |\n"
    assert grades(read(write_file(tmp_path / "a.md", table))) == {"pear": {"d1": 2}, "plum": {"d2": 1}}


def test_columns_without_names_are_not_read(tmp_path):
    record = read(write_file(tmp_path / "a.csv", ",query,,doc,grade\n1,pear,,d1,2\n"))
    assert grades(record) == {"pear": {"d1": 2}}
    assert list_warnings(record) == ("Columns that are not read: column 1, column 3.",)


@pytest.mark.parametrize(
    ("content", "ids"),
    [('{"q_1": {"d1": 1}, "q_2": {"d1": 1}}', "q_1, q_2"), ('{"Q12": ["d1"]}', "Q12"), ('{"7": {"d1": 1}}', "7")],
)
def test_ids_for_texts_are_named(content, ids, tmp_path):
    warnings = list_warnings(read(write_file(tmp_path / "qrels.json", content)))
    assert (
        f"Queries whose text looks like an id: if it is one, choose the file with their texts too: {ids}." in warnings
    )
    mixed = list_warnings(read(write_file(tmp_path / "a.json", '{"x86": {"d1": 1}, "pears": {"d1": 1}}')))
    assert not any("looks like an id" in warning for warning in mixed)
