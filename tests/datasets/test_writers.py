"""What each format leaves out and tells, and what it refuses because it would become wrong."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.exporting import export_record
from apps.datasets.formats.registry import WRITERS, read_dataset
from apps.datasets.formats.writing import WriteError
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.errors import BenchbenchError
from tests.datasets.samples import SAMPLES, WHOLE, by_id


def refusal(format: str, *queries: QueryRecord) -> str:
    with pytest.raises(BenchbenchError) as caught:
        export_record(DatasetRecord("x", queries), format, name="x").write(io.BytesIO())
    return caught.value.message


TOLD = (
    "BEIR directory has no place for queries without a judgment: q2.",
    "BEIR directory has no place for the description of the dataset; the label of the dataset; the "
    "slice_definitions of the dataset; slices of 1 query; category of 1 query; difficulty of 1 query; query_type "
    "of 1 query; filters of 1 query; expected_answer of 1 query; evidence of 1 query; notes of 1 query.",
    "BEIR directory states otherwise, or in part, the metadata of the dataset; doc_ref of 1 judgment; split of 1 "
    "query.",
)


def test_what_a_format_has_no_place_for_is_told() -> None:
    first, second, third = WHOLE.queries
    named = [replace(first, judgments=first.judgments[:1]), second, replace(third, judgments=by_id(1))]
    assert export_record(replace(WHOLE, queries=named), "beir", name="x").warnings == TOLD


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [
        ("QUERIES", 2, "it has 3 queries, at most 2 are allowed."),
        ("JUDGMENTS_PER_QUERY", 2, "it has 3 judgments of one query, at most 2 are allowed."),
        ("UPLOAD_BYTES", 1_000, "it has more than 1,000 bytes, which is the most that is allowed."),
    ],
)
def test_what_its_reader_would_not_take_again_is_told(
    limit: str, most: int, said: str, settings: Any, tmp_path: Path
) -> None:
    export = export_record(WHOLE, "benchbench-json", name="x")
    assert export.warnings == ()
    setattr(settings, f"BENCHMARK_DATASET_MAX_{limit}", most)
    export = export_record(WHOLE, "benchbench-json", name="x")
    (warning,) = export.warnings
    assert warning.startswith(
        "BenchBench JSON is written whole, but uploading or importing it again would be refused: "
    )
    assert said in warning
    with pytest.raises(BenchbenchError, match=f"{most:,}"):
        read_dataset(export.place(tmp_path / "x.json"))


def test_who_judged_and_what_was_noted_is_told() -> None:
    judged = JudgmentRecord({"uri": "u"}, 1, section_refs=["s"], source="human", judge="mara", note="sure")
    record = DatasetRecord("x", [QueryRecord("q1", "red", [judged, replace(judged, doc_ref={"uri": "v"})])])
    assert export_record(record, "benchbench-json", name="x").warnings == (
        "BenchBench JSON, schema 1.0 has no place for section_refs of 2 judgments; source of 2 judgments; judge of 2 "
        "judgments; note of 2 judgments.",
    )


def test_a_key_of_metadata_that_the_format_has_for_itself_is_told() -> None:
    record = DatasetRecord("x", [QueryRecord("q1", "red", metadata={"split": "a", "b": 1})], metadata={"version": "3"})
    held = export_record(record, "benchbench-json", name="x")
    assert held.warnings == (
        "BenchBench JSON, schema 1.0 has no place for the metadata of the dataset.",
        "BenchBench JSON, schema 1.0 states otherwise, or in part, metadata of 1 query.",
    )


REFUSED = {
    "a grade below 0": (
        "benchbench-json",
        QueryRecord("q1", "x", by_id(-1)),
        "the grade -1, and BenchBench JSON knows",
    ),
    "a grade over 3": ("benchbench-json", QueryRecord("q1", "x", by_id(4)), "BenchBench JSON knows 0, 1, 2 and 3"),
    "an odd reference": (
        "benchbench-json",
        QueryRecord("q1", "x", [JudgmentRecord({"url": "u"}, 1)]),
        "The query 'q1' has a judgment whose doc_ref has the unknown key 'url'",
    ),
    "Flowbaby's grades": ("flowbaby", QueryRecord("q1", "x", by_id(3)), "Flowbaby knows 0, 1 and 2: choose another"),
    "no canonical id": (
        "flowbaby",
        QueryRecord("q1", "x", [JudgmentRecord({"uri": "u"}, 1)]),
        "The query 'q1' judges uri 'u', which has no document_id, and Flowbaby names documents by it",
    ),
    "no id, BEIR": ("beir", QueryRecord("q1", "x", [JudgmentRecord({"uri": "u"}, 1)]), "BEIR names documents by it"),
    "no id, TREC": ("trec", QueryRecord("q1", "x", [JudgmentRecord({"uri": "u"}, 1)]), "TREC names documents by it"),
    "an id twice": (
        "trec",
        QueryRecord("q1", "x", [JudgmentRecord({"document_id": "d", "uri": u}, 1) for u in "ab"]),
        "judges the document_id 'd' twice",
    ),
    "a column": ("trec", QueryRecord("q1", "x", by_id(1)), "The id 'doc 1' has white space, which a column of a TREC"),
    "a topic's number": (
        "trec",
        QueryRecord("<q>", "x", [JudgmentRecord({"document_id": "d"}, 1)]),
        "The topic '<q>' does not fit on a line",
    ),
    "a cell": (
        "beir",
        QueryRecord("q\t1", "x", by_id(1)),
        "The id 'q\\t1' has a tab or a line break, which a BEIR file cannot hold",
    ),
    "a split": (
        "beir",
        QueryRecord("q1", "x", by_id(1), split="../a"),
        "is in the split '../a', which cannot be the name",
    ),
    "nothing judged": ("beir", QueryRecord("q1", "x"), "BEIR directory: no query is left that the format holds"),
}


@pytest.mark.parametrize(("format", "query", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_would_become_wrong_is_refused(format: str, query: QueryRecord, sentence: str) -> None:
    said = refusal(format, query)
    assert sentence in said
    assert said.endswith(".")


def test_a_format_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(WriteError, match="There is no format 'xml' of datasets; there is benchbench-json, beir, trec"):
        export_record(WHOLE, "xml", name="x")


def test_names_of_files_are_made_of_names_of_datasets() -> None:
    names = {format: export_record(SAMPLES[format], format, name="Fruit & Ünique").name for format in WRITERS}
    assert (names["benchbench-json"], names["trec"]) == ("fruit-unique.json", "fruit-unique.zip")
    assert export_record(WHOLE, "benchbench-json", name="§").name == "dataset.json"
