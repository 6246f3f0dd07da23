"""Reading a BEIR directory."""

import gzip
from pathlib import Path

import pytest

from apps.datasets.formats.beir import read_beir
from apps.datasets.formats.registry import read_dataset
from apps.datasets.records import DatasetError, JudgmentRecord, QueryRecord
from benchbench.errors import BenchbenchError

QUERIES = '{"_id": "q1", "text": "red"}\n{"_id": 2, "text": "blue", "metadata": {"n": 1}}\n{"_id": "q3", "text": "?"}\n'
HEADER = "query-id\tcorpus-id\tscore\n"


def beir(directory: Path, *, queries: str = QUERIES, header: str = HEADER, rows: str = "q1\tapple\t1\n") -> Path:
    (directory / "queries.jsonl").write_text(queries)
    (directory / "qrels").mkdir(exist_ok=True)
    (directory / "qrels/test.tsv").write_text(header + rows)
    return directory


def test_it_reads_the_queries_of_the_split_in_file_order(tmp_path: Path) -> None:
    record = read_beir(beir(tmp_path, rows="2\tplum tree\t-1\nq1\tapple\t4\n2\tberry\t2\nq1\tapple\t4\n"))
    assert record.queries == [
        QueryRecord("q1", "red", [JudgmentRecord({"document_id": "apple"}, 4)], split="test"),
        QueryRecord(
            "2",
            "blue",
            [JudgmentRecord({"document_id": "plum tree"}, -1), JudgmentRecord({"document_id": "berry"}, 2)],
            split="test",
            metadata={"n": 1},
        ),
    ]
    assert (record.name, record.source_format, record.duplicates) == (tmp_path.name, "beir", 1)
    assert record.metadata == {"split": "test"}


def test_it_reads_another_split_and_gzipped_files(tmp_path: Path) -> None:
    beir(tmp_path)
    (tmp_path / "queries.jsonl").unlink()
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(QUERIES.encode()))
    (tmp_path / "qrels/dev.tsv.gz").write_bytes(gzip.compress((HEADER + "q3\tpear\t1\r\n").encode()))
    record = read_beir(tmp_path, split="dev")
    assert [(query.key, query.split) for query in record.queries] == [("q3", "dev")]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("q1\ta\t1\nq9\tb\t1\n", "test.tsv, line 3, judges the query 'q9', which queries.jsonl does not have."),
        ("q1\ta\t1\nq1\ta\t2\n", "test.tsv, line 3, gives document 'a' the grade 2 for query 'q1', but it had"),
        ("q1\ta\n", "test.tsv, line 2, must have three cells between tabs: query-id, corpus-id, score."),
        ("q1\t\t1\n", "test.tsv, line 2, must have three cells between tabs: query-id, corpus-id, score."),
        ("q1 0 a 1\n", "test.tsv, line 2, must have three cells between tabs: query-id, corpus-id, score."),
        ("q1\ta\t1.5\n", "test.tsv, line 2, has the score '1.5', which is not an integer."),
        ("q1\ta\thigh\n", "test.tsv, line 2, has the score 'high', which is not an integer."),
        ("", "test.tsv holds no judgment."),
    ],
    ids=["unknown query", "other grade", "two cells", "blank cell", "spaces", "fraction", "word", "nothing"],
)  # fmt: skip
def test_it_names_file_and_line_of_a_fault(tmp_path: Path, rows: str, sentence: str) -> None:
    with pytest.raises(BenchbenchError) as caught:
        read_beir(beir(tmp_path, rows=rows))
    assert caught.value.message.startswith(sentence)


@pytest.mark.parametrize(
    ("queries", "sentence"),
    [
        ('{"_id": "q1", "text": "a"}\n{"_id": "q1", "text": "b"}', "queries.jsonl, line 2, _id 'q1' is that of"),
        ('{"_id": "q1", "text": " "}', "queries.jsonl, line 1, text is blank."),
        ('{"_id": "q1"}', "queries.jsonl, line 1 lacks the key text."),
        ('{"_id": "q1", "text": "a", "metadata": 1}', "queries.jsonl, line 1, metadata must be an object"),
        ('{"_id": "q1", "text": "a"}\n["q2"]', "queries.jsonl, line 2, holds a list: each line must be an object."),
        ('{"_id": "q1", "text": "a"}\n{"_id": ', "queries.jsonl, line 2, column 9, is not JSON"),
    ],
    ids=["id twice", "blank", "no text", "metadata", "no object", "no JSON"],
)  # fmt: skip
def test_it_names_file_line_and_key_of_a_faulty_query(tmp_path: Path, queries: str, sentence: str) -> None:
    with pytest.raises(BenchbenchError) as caught:
        read_beir(beir(tmp_path, queries=queries))
    assert caught.value.message.startswith(sentence)


@pytest.mark.parametrize("header", ["q1\tapple\t1\n", "query-id corpus-id score\n", "query-id\tcorpus-id\tscore\tx\n"])
def test_it_requires_the_header(tmp_path: Path, header: str) -> None:
    with pytest.raises(BenchbenchError, match="line 1, must be the header query-id<TAB>corpus-id<TAB>score"):
        read_beir(beir(tmp_path, header=header))


def test_it_lists_the_splits_when_one_is_asked_for_that_is_not_there(tmp_path: Path) -> None:
    beir(tmp_path)
    (tmp_path / "qrels/dev.tsv.gz").touch()
    with pytest.raises(BenchbenchError, match=r"has no split 'train': the splits there are dev, test\."):
        read_beir(tmp_path, split="train")
    with pytest.raises(BenchbenchError, match=r"has no split '\.\./qrels/test'"):
        read_beir(tmp_path, split="../qrels/test")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BenchbenchError, match=r"has no split 'test': there is no qrels/SPLIT\.tsv"):
        read_beir(tmp_path / "empty")


def test_it_says_when_there_are_no_queries(tmp_path: Path) -> None:
    (beir(tmp_path) / "queries.jsonl").unlink()
    with pytest.raises(
        BenchbenchError, match=r"holds no queries\.jsonl and no queries\.jsonl\.gz: is it a BEIR directory"
    ):
        read_beir(tmp_path)


def test_a_directory_is_read_as_beir_and_a_file_as_json(tmp_path: Path) -> None:
    directory = beir(tmp_path)
    (tmp_path / "a.json").write_text('{"queries": [{"query_key": "q1", "query_text": "x"}]}')
    assert read_dataset(directory).source_format == "beir"
    assert read_dataset(directory, split="test") == read_beir(directory)
    assert read_dataset(tmp_path / "a.json").source_format == "benchbench-json"
    with pytest.raises(DatasetError, match="benchbench-json has no splits"):
        read_dataset(tmp_path / "a.json", split="test")
    with pytest.raises(DatasetError, match="does not exist"):
        read_dataset(tmp_path / "absent")


@pytest.mark.parametrize(
    ("name", "split", "queries", "judgments"), [("adi", "test", 35, 170), ("scifact", "test", 300, 339)]
)
def test_it_reads_the_shared_collections(
    shared_data: Path, name: str, split: str, queries: int, judgments: int
) -> None:
    record = read_beir(shared_data / name, split=split)
    assert len(record.queries) == queries
    assert sum(len(query.judgments) for query in record.queries) == judgments
