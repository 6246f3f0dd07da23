"""Reading BenchBench JSON, schema 1.0: one test for each rule."""

import json
from dataclasses import replace

import pytest

from apps.datasets.formats.schema1 import read_schema1
from apps.datasets.records import JudgmentRecord
from benchbench.errors import BenchbenchError
from tests.datasets.schema1 import FULL, judged, parse, query, refusal


def test_it_reads_a_dataset():
    record = parse(FULL)
    assert (record.name, record.description, record.label) == ("Fruit", "Questions about fruit.", "2.1")
    assert (record.schema_version, record.source_format) == ("1.0", "benchbench-json")
    assert record.slice_definitions == {"easy": "One fruit."}
    assert record.metadata == {"judges": 2}
    first, second, third = record.queries
    assert (first.key, first.text) == ("q1", "red fruit")
    assert first.judgments == [
        JudgmentRecord({"document_id": "apple", "uri": "shop:apple"}, 3),
        JudgmentRecord({"uri": "shop:plum"}, 1),
        JudgmentRecord({"uri": "shop:cherry"}, 2),
    ]
    assert first.slices == ["easy", "colour"]
    assert (first.category, first.difficulty, first.query_type, first.split) == ("colour", "low", "keyword", "test")
    assert (first.filters, first.expected_answer, first.evidence) == ({"season": "autumn"}, "apple", ["red"])
    assert (first.notes, first.metadata) == ("A warm-up.", {"author": "mara"})
    assert (second.key, second.text, second.judgments) == ("q2", "no fruit", [JudgmentRecord({"path": "a/b"}, 0)])
    assert (third.judgments, third.slices, third.filters, third.metadata) == ([], [], {}, {})


def test_equivalent_spellings_read_the_same():
    record = parse({"queries": [{"query_key": "q1", "query_text": "x"}]})
    assert (record.name, record.label, record.schema_version, record.metadata) == ("", "", "1.0", {})
    assert parse(b"\xef\xbb\xbf" + json.dumps(FULL).encode()) == parse(FULL)
    assert parse(query(query_id="q1", query="red fruit")) == parse(query())
    assert parse(query(metadata=None) | {"metadata": None}) == parse(query())


def test_it_counts_a_judgment_stated_twice_once():
    record = parse(
        judged("shop:plum", {"doc_ref": {"uri": "shop:plum"}}, {"doc_ref": "shop:plum", "relevance_grade": "2"})
    )
    assert record.queries[0].judgments == [JudgmentRecord({"uri": "shop:plum"}, 2)]
    assert record.duplicates == 2
    record = parse(judged({"doc_ref": {"uri": "u", "path": "p"}}, {"doc_ref": {"path": "p", "uri": "u"}}))
    assert record.duplicates == 1


def test_null_reference_keys_are_ignored():
    record = parse(judged({"doc_ref": {"document_id": None, "uri": "u", "path": None}}, "u"))
    assert record.queries[0].judgments == [JudgmentRecord({"uri": "u"}, 2)]
    assert "is empty" in refusal(judged({"doc_ref": {"document_id": None}})).message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("slices", value) for value in ("easy", [1], [" "], ["x" * 101])),
        *(("category", value) for value in (1, True, ["a"], "x" * 101)),
        *(("difficulty", {}), ("split", 0), ("filters", []), ("filters", "season"), ("evidence", "red")),
    ],
)
def test_invalid_reserved_query_keys_stay_plain_metadata(name, value):
    record = parse(query(metadata={name: value, "topic": "security"}))
    (stored,) = record.queries
    assert stored == replace(parse(query()).queries[0], metadata={name: value, "topic": "security"})
    (warning,) = record.warnings
    assert warning.startswith(f"metadata.{name} is not what the {name} of a query")
    assert warning.endswith("in q1: it stays plain metadata, and is not used.")


@pytest.mark.parametrize(("key", "value"), [("name", 1), ("version", True), ("version", {}), ("slice_definitions", [])])
def test_invalid_reserved_dataset_keys_stay_plain_metadata(key, value):
    record = parse(query() | {"metadata": {key: value}})
    assert (record.name, record.label, record.slice_definitions, record.metadata) == ("", "", {}, {key: value})
    assert record.warnings[0].startswith(f"metadata.{key} is ")


def test_filters_that_will_restrict_the_search_say_so():
    (warning,) = parse(FULL).warnings
    assert warning == (
        "metadata.filters restricts the search: for q1 only documents are searched whose metadata has the season that "
        "the query states."
    )


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (query(bad=1), "queries[0].bad"),
        (judged({"doc_ref": "u", "bad": 1}), "queries[0].relevant_docs[0].bad"),
        (query(query_id="q2"), "queries[0].query_key"),
        (query(query_key="q" * 201), "queries[0].query_key"),
        (judged("u", {"doc_ref": {"url": "x"}}), "queries[0].relevant_docs[1].doc_ref.url"),
        (judged({"doc_ref": {"uri": " "}}), "queries[0].relevant_docs[0].doc_ref.uri"),
        (judged(" "), "queries[0].relevant_docs[0].doc_ref"),
    ],
)
def test_an_error_carries_the_whole_path(value, field):
    assert refusal(value).field == field


@pytest.mark.parametrize(("version", "label"), [("1.1", "1.1"), (" 2 ", "2"), (3, "3"), (1.5, "1.5"), ("", "")])
def test_it_takes_the_version_that_the_file_states(version, label):
    assert parse(query() | {"metadata": {"version": version}}).label == label


@pytest.mark.parametrize("grade", [0, 1, 2, 3, "0", "1", "2", "3"])
def test_it_takes_the_grades_from_0_to_3(grade):
    (judgment,) = parse(judged({"doc_ref": "u", "relevance_grade": grade})).queries[0].judgments
    assert judgment.grade == int(grade)
    assert type(judgment.grade) is int


def test_it_keeps_the_limits_of_a_file():
    with pytest.raises(
        BenchbenchError, match="The file has more than 10,000 bytes, the most that is allowed"
    ) as caught:
        parse(b" " * 10_001)
    assert caught.value.status == 413
    content = json.dumps(
        {"queries": [{"query_key": k, "query_text": k, "relevant_docs": ["a", "b", "c"]} for k in "xyz"]}
    )
    assert len(parse(content.ljust(10_000).encode()).queries) == 3


def test_it_reads_a_path_within_the_configured_limits(tmp_path, settings):
    path = tmp_path / "fruit.json"
    path.write_text(json.dumps(FULL))
    assert read_schema1(path) == parse(FULL)
    settings.BENCHMARK_DATASET_MAX_QUERIES = 2
    with pytest.raises(BenchbenchError, match="at most 2 are allowed"):
        read_schema1(path)
    settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES = 100
    with pytest.raises(BenchbenchError, match="more than 100 bytes"):
        read_schema1(path)
    with pytest.raises(BenchbenchError, match="cannot be read"):
        read_schema1(tmp_path / "absent.json")
