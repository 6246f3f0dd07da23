"""What BenchBench JSON, schema 1.0, does not take, and damaged files: a dataset, or a sentence."""

import json
from typing import Any

import pytest

from apps.datasets.formats.schema1 import read_schema1
from benchbench.errors import BenchbenchError
from tests.datasets.schema1 import judged, query, refusal

REFUSED: dict[str, tuple[Any, str]] = {
    "a list": ([], 'The file is a list: put it into an object, {"queries": […]}.'),
    "queries null": ({"queries": None}, "queries must be a list, not null."),
    "no query": ({"queries": []}, "queries is empty: a dataset needs at least one query."),
    "too many queries": ({"queries": [{}] * 4}, "queries has 4 queries: at most 3 are allowed."),
    "unknown schema": (query() | {"schema_version": "1.1"}, "schema_version is '1.1': this reader knows \"1.0\"."),
    "schema a number": (query() | {"schema_version": 1.0}, "schema_version must be a string, not a number."),
    "schema null": (query() | {"schema_version": None}, "schema_version must be a string, not null."),
    "metadata a list": (query() | {"metadata": []}, "metadata must be an object, not a list."),
    "query key a number": (query(query_key=1), "queries[0].query_key must be a string, not a number."),
    "query key blank": (query(query_key=" "), "queries[0].query_key must not be blank."),
    "key and alias differ": (
        query(query_id="q2"),
        "queries[0] has query_key and its alias query_id with different values.",
    ),
    "text and alias differ": (
        query(query="x"),
        "queries[0] (query 'q1') has query_text and its alias query with different values.",
    ),
    "documents and alias differ": (
        query(relevant_docs=[], relevant_doc_refs=["u"]),
        "queries[0] (query 'q1') has relevant_docs and its alias relevant_doc_refs with different values.",
    ),
    "text blank": (query(query_text="\n"), "queries[0].query_text (query 'q1') must not be blank."),
    "text null": (query(query_text=None), "queries[0].query_text (query 'q1') must be a string, not null."),
    "key of two queries": (
        {"queries": [{"query_key": key, "query_text": "x"} for key in ("q1", "q2", "q1")]},
        "queries[2].query_key is 'q1', as in queries[0]: a key names one query.",
    ),
    "query metadata": (query(metadata="m"), "queries[0].metadata (query 'q1') must be an object, not a string."),
    "documents an object": (
        query(relevant_docs={}),
        "queries[0].relevant_docs (query 'q1') must be a list, not an object.",
    ),
    "documents null": (query(relevant_docs=None), "queries[0].relevant_docs (query 'q1') must be a list, not null."),
    "too many judgments": (
        judged("a", "b", "c", "d"),
        "queries[0].relevant_docs (query 'q1') has 4 judgments: at most 3 a query are allowed.",
    ),
    "item a number": (judged(1), "queries[0].relevant_docs[0] (query 'q1') must be an object, not a number."),
    "doc_ref null": (
        judged({"doc_ref": None}),
        "queries[0].relevant_docs[0].doc_ref (query 'q1') must be an object with any of document_id, uri, "
        "content_hash, path, file_name, or a string that is the uri, not null.",
    ),
    "doc_ref empty": (
        judged({"doc_ref": {}}),
        "queries[0].relevant_docs[0].doc_ref (query 'q1') is empty: give any of document_id, uri, content_hash, path, "
        "file_name.",
    ),
    "doc_ref with another key": (
        judged({"doc_ref": {"url": "x"}}),
        "queries[0].relevant_docs[0].doc_ref (query 'q1') has the unknown key 'url': known are document_id, uri, "
        "content_hash, path, file_name.",
    ),
    "doc_ref of a number": (
        judged({"doc_ref": {"document_id": 7}}),
        "queries[0].relevant_docs[0].doc_ref (query 'q1') must hold strings that are not blank: its document_id is "
        "a number.",
    ),
    "doc_ref blank": (
        judged(" "),
        "queries[0].relevant_docs[0].doc_ref (query 'q1') must hold strings that are not blank: its uri is blank.",
    ),
    "other grade": (
        judged({"doc_ref": "u", "relevance_grade": 1}, {"doc_ref": {"uri": "u"}}),
        "queries[0].relevant_docs[1].relevance_grade (query 'q1') is 2, but the same document was graded 1 before.",
    ),
}


@pytest.mark.parametrize(("value", "sentence"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(value, sentence):
    assert refusal(value).message.startswith(sentence)


@pytest.mark.parametrize("grade", [2.9, -1, 4, True, False, None, "high", "4", "2.5", "", "٢", [2], {"a": 1}])
def test_grades_other_than_0_to_3_are_refused(grade):
    error = refusal(judged({"doc_ref": "u", "relevance_grade": grade}))
    position = "queries[0].relevant_docs[0].relevance_grade (query 'q1')"
    assert error.message == f"{position} must be an integer from 0 to 3, not {json.dumps(grade)}."
    assert error.field == "queries[0].relevant_docs[0].relevance_grade"


DAMAGED = {
    "empty": (b"", "The file is empty: it must contain JSON."),
    "cut off": (b'{"queries": [', "The file is not JSON: Expecting value (line 1, column 14)."),
    "two values": (b"{} {}", "The file is not JSON: Extra data"),
    "NaN": (b'{"metadata": {"a": NaN}}', "The file holds NaN, which is not JSON."),
    "Infinity": (b'{"metadata": {"a": -Infinity}}', "The file holds -Infinity, which is not JSON."),
    "past a double": (b'{"metadata": {"a": 1e400}}', "The file holds the number 1e400, which is out of range."),
    "endless integer": (b'{"metadata": {"a": ' + b"1" * 5000 + b"}}", "The file holds an integer of 5000 digits"),
    "key twice": (b'{"queries": [], "queries": []}', "The file has the key 'queries' twice in one object."),
    "not UTF-8": (b'{"queries": "\xe9"}', "The file is not UTF-8: byte 13"),
    "UTF-16": ('{"queries": []}'.encode("utf-16"), "The file is not UTF-8"),
    "NUL": (b'{"metadata": {"a": ["\\u0000"]}}', "The file holds a character that cannot be stored (NUL or half"),
    "NUL in a key": (b'{"metadata": {"\\u0000": 1}}', "The file holds a character that cannot be stored (NUL or half"),
    "half a pair": (b'{"metadata": {"a": "\\udcff"}}', "The file holds a character that cannot be stored (NUL or half"),
    "deep": (b'{"metadata": ' + b'{"a":' * 150 + b"1" + b"}" * 151, "The file is nested deeper than 100 levels."),
    "very deep": (b"[" * 9000, "The file is nested deeper than 100 levels."),
}


@pytest.mark.parametrize(("content", "sentence"), DAMAGED.values(), ids=DAMAGED)
def test_it_refuses_a_damaged_file(content, sentence):
    assert refusal(content).message.startswith(sentence)


def test_it_names_a_file_that_is_damaged(tmp_path):
    (tmp_path / "x.json").write_bytes(b'{"queries": [')
    with pytest.raises(BenchbenchError, match=r"x\.json is not JSON: Expecting value \(line 1, column 14\)\."):
        read_schema1(tmp_path / "x.json")
