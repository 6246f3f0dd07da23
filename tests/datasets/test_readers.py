"""Reading each further format: one test for what it gives, and for its errors."""

import gzip
import json
import zipfile

import pytest

from apps.datasets.formats.reading import detect, read_dataset
from apps.datasets.formats.registry import FORMATS
from apps.datasets.records import JudgmentRecord, QueryRecord, check
from benchbench.files.sniffing import sniff
from tests.datasets.valid import DOCUMENT, SCHEMA1, TOPICS_TSV, TRUTH, VALID, judgments, refusal_of, sectioned, trec
from tests.files.samples import METADATA, QRELS, RUN, TOPICS, write_dataset, write_file


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_detected_by_content_and_recorded(format, tmp_path):
    path = VALID[format](tmp_path)
    assert detect(path) == format
    record = read_dataset(path)
    check(record)
    assert record.source_format == format


def test_topics_and_keys_that_look_like_something_else(tmp_path):
    topics = write_file(tmp_path / "topics.tsv", "q1\tpopulation of 1950\nq2\tsummer of 69\n")
    write_file(tmp_path / "qrels.txt", "q1 0 d1 1\nq2\t0\td2\t1\n")
    assert sniff(topics) == "trec-topics"
    assert detect(tmp_path) == "trec"
    assert [query.text for query in read_dataset(tmp_path).queries] == ["population of 1950", "summer of 69"]
    six = write_file(tmp_path / "six.tsv", "q1\tyears of war were 5 again\n")
    assert sniff(six) == "trec-topics"
    assert sniff(write_file(tmp_path / "qrels", "{q 0 d1 1\n[q 0 d2 1\n")) == "trec-qrels"
    assert sniff(write_file(tmp_path / "topics", "{q\tsummer of 69\n")) == "trec-topics"
    assert sniff(write_file(tmp_path / "lines.jsonl", '{"a":\t1}\n{"a":\t2}\n')) == "table"


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_may_be_packed(format, tmp_path):
    path = VALID[format](tmp_path)
    plain = read_dataset(path)
    for file in [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]:
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    packed = path if path.is_dir() else path.with_name(path.name + ".gz")
    assert detect(packed) == format
    assert read_dataset(packed) == plain


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("folder", ["", "inside/"])
def test_a_directory_may_come_as_a_zip(format, folder, tmp_path):
    (tmp_path / "inside").mkdir()
    path = VALID[format](tmp_path / "inside")
    if path.is_file():
        return
    with zipfile.ZipFile(tmp_path / "inside.zip", "w") as archive:
        for file in path.rglob("*"):
            archive.write(file, folder + str(file.relative_to(path)))
        archive.writestr("__MACOSX/._queries.jsonl", "x")
        archive.writestr(".DS_Store", "x")
    assert judgments(read_dataset(tmp_path / "inside.zip")) == judgments(read_dataset(path))


def test_non_dataset_files_are_identified_with_a_remedy(tmp_path):
    for name, content, sentence in [
        ("t.tsv", TOPICS_TSV, "t.tsv holds queries without judgments"),
        ("t.xml", "<top><num>1<title>red</top>", "t.xml holds queries without judgments"),
        ("run.txt", "q1 Q0 d1 1 0.5 tag\n", "run.txt is a TREC run"),
        ("run.json", json.dumps(RUN), "run.json is a Flowbaby run"),
        ("topics.json", json.dumps(TOPICS), "topics.json is a part of a Flowbaby dataset"),
        ("qrels.json", json.dumps(QRELS), "qrels.json is a part of a Flowbaby dataset"),
        ("queries.jsonl", '{"_id": "q1", "text": "red"}\n', "queries.jsonl holds queries without judgments"),
        ("a.json", json.dumps(DOCUMENT), "a.json is a document"),
        ("notes.txt", "some words\nno more\n", "notes.txt has no known format: name its format, one of"),
        ("empty", "", "empty is empty."),
    ]:
        assert refusal_of(write_file(tmp_path / name, content)).startswith(sentence)
    (tmp_path / "none").mkdir()
    assert "holds no dataset" in refusal_of(tmp_path / "none")


def test_an_option_of_another_format_is_refused(tmp_path):
    path = write_file(tmp_path / "a.json", SCHEMA1)
    assert (
        refusal_of(path, columns={"grade": "x"}) == "The format benchbench-json has no columns: leave the columns out."
    )
    assert refusal_of(path, split="test") == "The format benchbench-json has no splits: leave the split out."
    assert refusal_of(path, topics=path) == "The format benchbench-json has no topics: leave the topics out."


class TestTrec:
    def test_it_reads_judged_topics_and_names_the_others(self, tmp_path):
        record = read_dataset(trec(tmp_path) / "qrels.txt", topics=tmp_path / "topics.tsv")
        assert record.queries == [
            QueryRecord(
                "q1", "red", [JudgmentRecord({"document_id": "d1"}, 1), JudgmentRecord({"document_id": "d2"}, -1)]
            ),
            QueryRecord("q3", "green", [JudgmentRecord({"document_id": "d9"}, 4)]),
        ]
        assert record.warnings == ["Queries without a judgment, left out: q2."]
        assert (record.name, record.source_format) == ("qrels", "trec")

    def test_non_separating_whitespace_belongs_to_the_id(self, tmp_path):
        topics = write_file(tmp_path / "t", "q1\tred\n")
        record = read_dataset(write_file(tmp_path / "q", "q1 0 d\u00a01 1\n"), topics=topics)
        assert record.queries[0].judgments == [JudgmentRecord({"document_id": "d\u00a01"}, 1)]

    def test_topic_description_and_narrative_are_kept(self, tmp_path):
        topics = write_file(tmp_path / "t", "<top><num> Number: q1<title>red<desc> Description: any red<narr>x</top>")
        record = read_dataset(write_file(tmp_path / "q", "q1 0 d 1\n"), topics=topics)
        assert record.queries[0].metadata == {"description": "any red", "narrative": "x"}

    def test_its_errors_are_sentences(self, tmp_path):
        trec(tmp_path)
        assert "Give the file of its topics too" in refusal_of(tmp_path / "qrels.txt")
        write_file(tmp_path / "topics.tsv", "q1\tred\n")
        assert (
            refusal_of(tmp_path)
            == "qrels.txt judges the query 'q3', which topics.tsv does not have: it has 'q1', for example."
        )
        (tmp_path / "topics.tsv").unlink()
        assert "Give the file of its topics too" in refusal_of(tmp_path)


class TestFlowbaby:
    def test_it_reads_topics_with_their_judgments(self, tmp_path):
        record = read_dataset(write_dataset(tmp_path / "data"))
        first, second, third = record.queries
        assert (first.key, first.text, list(first.slices), first.split) == ("q1", "one?", ["a", "b"], "test")
        assert first.metadata == {"expected_positive_count": 2}
        assert first.judgments == [
            JudgmentRecord({"document_id": "doc1"}, 1), JudgmentRecord({"document_id": "doc2"}, 1)
        ]  # fmt: skip
        assert (list(third.slices), second.judgments[0].grade) == (["default"], 2)
        assert (record.name, record.label, record.slice_definitions) == (
            "golden",
            "1.0.0",
            METADATA["slice_definitions"],
        )


class TestSectioned:
    def test_it_reads_questions_with_document_and_sections(self, tmp_path):
        record = read_dataset(sectioned(tmp_path))
        first = record.queries[0]
        assert (first.key, first.text, first.expected_answer, list(first.evidence)) == (
            "t1",
            "who?",
            "ada",
            ["Ada did."],
        )
        assert first.judgments == [JudgmentRecord({"document_id": "A"}, 1, section_refs=["s1", "s9"])]
        assert (first.difficulty, first.query_type) == ("unknown", "unknown")

    def test_missing_documents_and_sections_are_counted_and_named(self, tmp_path):
        record = read_dataset(sectioned(tmp_path))
        assert record.dangling == 2
        assert list(record.warnings) == [
            "Documents that documents/ does not have: 'Z' of 't2'.",
            "Sections that their document does not have: 's9' of 'A' (t1).",
        ]
        alone = write_file(tmp_path / "alone.json", TRUTH)
        (tmp_path / "documents/a.json").unlink()
        assert read_dataset(alone).dangling is None

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"question": " "}, "ground_truth.json[0].question must not be blank."),
            ({"section_ids": "s1"}, "ground_truth.json[0].section_ids must be a list, not a string."),
            ({"section_ids": ["s1", ""]}, "ground_truth.json[0].section_ids must be a list of strings that are not"),
            ({"evidence": "x"}, "ground_truth.json[0].evidence must be a list, not a string."),
            ({"id": "t2"}, "ground_truth.json has the id 't2' more than once."),
        ],
    )
    def test_its_errors_name_file_and_key(self, tmp_path, change, sentence):
        assert refusal_of(sectioned(tmp_path, [TRUTH[0] | change, TRUTH[1]])).startswith(sentence)

    def test_its_errors_name_the_file(self, tmp_path):
        assert refusal_of(sectioned(tmp_path, [])) == "ground_truth.json holds no question."
        assert refusal_of(sectioned(tmp_path, {})) == "ground_truth.json must be a list of questions, not an object."

    def test_section_ids_are_local_to_their_document(self, tmp_path):
        truth = [TRUTH[0] | {"section_ids": ["s1"]}, TRUTH[1] | {"section_ids": ["s3"]}]
        write_file(sectioned(tmp_path, truth) / "documents/z.json", DOCUMENT | {"id": "Z", "sections": []})
        assert list(read_dataset(tmp_path).warnings) == [
            "Sections that their document does not have: 's3' of 'Z' (t2)."
        ]
