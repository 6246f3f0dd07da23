"""What a format gives back when it is read again, what it leaves out and reports, and what it refuses."""

import io
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from apps.datasets.exporting import export_record, record_of
from apps.datasets.formats.reading import read_dataset
from apps.datasets.formats.registry import FORMATS, WRITERS
from apps.datasets.formats.writing import WriteError, describe_losses
from apps.datasets.importing import import_dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord, check
from apps.datasets.versions import hash_content
from benchbench.errors import BenchbenchError
from tests.damages import EXAMPLES, drawn
from tests.datasets.samples import COMPLETE, SAMPLES, by_id, records


def again(record: DatasetRecord, format: str, folder: Path, *, split: str = "") -> DatasetRecord:
    """Write a record in a format, and read it."""
    export = export_record(record, format, name=record.name)
    path = export.save(folder / "made")
    return read_dataset(path, format=format, split=split)


def same(one: DatasetRecord, second: DatasetRecord, *, label: str = "A") -> bool:
    """Whether two records are the same but for their names, and what readers say of them."""
    return (
        hash_content(one.queries) == hash_content(second.queries)
        and [query.key for query in one.queries] == [query.key for query in second.queries]
        and describe_losses(one, second, label=label) == describe_losses(second, one, label=label) == ()
    )


def test_every_format_that_is_written_is_read():
    assert set(WRITERS) == set(SAMPLES) <= set(FORMATS)


@pytest.mark.parametrize("format", WRITERS)
def test_a_format_gives_back_all_that_it_holds(format, tmp_path):
    record = SAMPLES[format]
    assert export_record(record, format, name="x").warnings == ()
    split = record.metadata["split"] if format == "beir" else ""
    read = again(record, format, tmp_path, split=split)
    assert same(read, record)
    assert read.source_format == format
    if format in ("benchbench-json", "flowbaby"):
        assert read.name == record.name


@pytest.mark.django_db
@pytest.mark.parametrize("format", WRITERS)
def test_import_export_import_gives_the_same_content(format, tmp_path):
    first = import_dataset(SAMPLES[format], name="first").version
    stored = record_of(first)
    assert same(stored, SAMPLES[format])
    split = SAMPLES[format].metadata["split"] if format == "beir" else ""
    export = export_record(stored, format, name="first")
    for ending in ("", ".gz") if export.writer.extension else ("", ".zip"):
        path = export.save(tmp_path / f"file.{export.writer.extension or 'd'}{ending}")
        second = import_dataset(read_dataset(path, format=format, split=split), name=path.name)
        assert second.version.content_hash == first.content_hash
        assert second.report.outcome == "created"


@pytest.mark.parametrize("format", WRITERS)
@drawn(max(EXAMPLES // 60, 12), phases=[Phase.generate])
@given(data=st.data())
@pytest.mark.fuzz
@pytest.mark.thorough
def test_exported_datasets_read_back_equal_or_are_refused(format, data, tmp_path):
    record = data.draw(records(format))
    check(record)
    with TemporaryDirectory(dir=tmp_path) as name:
        folder = Path(name)
        try:
            export = export_record(record, format, name="x")
            path = export.save(folder / "made")
        except BenchbenchError as error:
            assert (error.message[-1], list(folder.iterdir())) == (".", [])  # noqa: PT017 -- whether it raises is drawn
            return
        for split in {query.split for query in export.record.queries} if format == "beir" else {""}:
            piece = [query for query in export.record.queries if query.split == split]
            claimed = replace(export.record, queries=piece, metadata={"split": split}) if split else export.record
            assert same(read_dataset(path, format=format, split=split), claimed)


def refusal(format: str, *queries: QueryRecord) -> str:
    with pytest.raises(BenchbenchError) as caught:
        export_record(DatasetRecord("x", queries), format, name="x").write(io.BytesIO())
    return caught.value.message


REFUSALS = (
    "BEIR directory cannot hold queries without a judgment: q2.",
    "BEIR directory cannot hold the description of the dataset; the label of the dataset; the "
    "slice_definitions of the dataset; slices of 1 query; category of 1 query; difficulty of 1 query; query_type "
    "of 1 query; filters of 1 query; expected_answer of 1 query; evidence of 1 query; notes of 1 query; weight of 1 "
    "query.",
    "BEIR directory changes, or holds only in part, the metadata of the dataset; doc_ref of 1 judgment; split of 1 "
    "query.",
)


def test_export_warns_of_fields_the_format_cannot_hold():
    first, second, third = COMPLETE.queries
    labelled = [replace(first, judgments=first.judgments[:1]), second, replace(third, judgments=by_id(1))]
    assert export_record(replace(COMPLETE, queries=labelled), "beir", name="x").warnings == REFUSALS


@pytest.mark.parametrize(
    ("limit", "maximum", "message"),
    [
        ("QUERIES", 2, "it has 3 queries, at most 2 are allowed."),
        ("JUDGMENTS_PER_QUERY", 2, "it has 3 judgments of one query, at most 2 are allowed."),
        ("UPLOAD_BYTES", 1_000, "it has more than 1,000 bytes, which is the most that is allowed."),
    ],
)
def test_export_warns_if_its_reader_would_refuse_it(limit, maximum, message, settings, tmp_path):
    export = export_record(COMPLETE, "benchbench-json", name="x")
    assert export.warnings == ()
    setattr(settings, f"BENCHMARK_DATASET_MAX_{limit}", maximum)
    export = export_record(COMPLETE, "benchbench-json", name="x")
    (warning,) = export.warnings
    assert warning.startswith("BenchBench JSON is complete, but uploading or importing it again would be refused: ")
    assert message in warning
    with pytest.raises(BenchbenchError, match=f"{maximum:,}"):
        read_dataset(export.save(tmp_path / "x.json"))


def test_export_warns_of_fields_schema_1_cannot_hold():
    judged = JudgmentRecord({"uri": "u"}, 1, section_refs=["s"], source="human", judge="mara", note="sure")
    record = DatasetRecord("x", [QueryRecord("q1", "red", [judged, replace(judged, doc_ref={"uri": "v"})])])
    assert export_record(record, "benchbench-json", name="x").warnings == (
        "BenchBench JSON, schema 1.0 cannot hold section_refs of 2 judgments; source of 2 judgments; judge of 2 "
        "judgments; note of 2 judgments.",
    )
    record = DatasetRecord("x", [QueryRecord("q1", "red", metadata={"split": "a", "b": 1})], metadata={"version": "3"})
    claimed = export_record(record, "benchbench-json", name="x")
    assert claimed.warnings == (
        "BenchBench JSON, schema 1.0 cannot hold the metadata of the dataset.",
        "BenchBench JSON, schema 1.0 changes, or holds only in part, metadata of 1 query.",
    )


REFUSED = {
    "a grade below 0": (
        "benchbench-json",
        QueryRecord("q1", "x", by_id(-1)),
        "the grade -1, but BenchBench JSON allows",
    ),
    "a grade over 3": ("benchbench-json", QueryRecord("q1", "x", by_id(4)), "BenchBench JSON allows 0, 1, 2 and 3"),
    "an odd reference": (
        "benchbench-json",
        QueryRecord("q1", "x", [JudgmentRecord({"url": "u"}, 1)]),
        "The query 'q1' has a judgment whose doc_ref has the unknown key 'url'",
    ),
    "Flowbaby's grades": ("flowbaby", QueryRecord("q1", "x", by_id(3)), "Flowbaby allows 0, 1 and 2: choose another"),
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
    "nothing judged": ("beir", QueryRecord("q1", "x"), "BEIR directory: the format cannot hold any of the queries"),
}


@pytest.mark.parametrize(("format", "query", "sentence"), REFUSED.values(), ids=REFUSED)
def test_exports_that_would_corrupt_data_are_refused(format, query, sentence):
    message = refusal(format, query)
    assert sentence in message
    assert message.endswith(".")


def test_names_of_formats_and_files():
    with pytest.raises(WriteError, match="Unknown dataset format 'xml': choose one of benchbench-json, beir, trec"):
        export_record(COMPLETE, "xml", name="x")
    names = {format: export_record(SAMPLES[format], format, name="Fruit & Ünique").name for format in WRITERS}
    assert (names["benchbench-json"], names["trec"]) == ("fruit-unique.json", "fruit-unique.zip")
    assert export_record(COMPLETE, "benchbench-json", name="§").name == "dataset.json"
