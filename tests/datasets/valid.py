"""A valid file of each format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.datasets.formats.reading import read_dataset
from apps.datasets.records import DatasetRecord, check
from benchbench.errors import BenchbenchError
from tests.datasets import tool_samples
from tests.files.samples import write_dataset, write_file

QRELS_TXT = "q1 0 d1 1\nq1 0 d2 -1\nq3 0 d9 4\n"
TOPICS_TSV = "q1\tred\nq2\tblue\nq3\tgreen\n"
TABLE = "query_key,query_text,uri,grade\nq1,red,u1,1\nq1,,u2,0\nq1,red,u1,1\nq2,blue,,\n"
MODULES = {
    "benchmark_queries": [
        {
            "id": 7,
            "query": "how to log",
            "version": "2.0",
            "expected_modules": ["log", "trace"],
            "category": "ops",
            "difficulty": "easy",
            "notes": None,
        }
    ],
    "metadata": {"total_queries": 2, "categories": {"ops": 1}, "difficulty_distribution": {"hard": 1}},
}
TRUTH = [
    {
        "id": "t1",
        "question": "who?",
        "answer": "ada",
        "document_id": "A",
        "section_ids": ["s1", "s9"],
        "evidence": ["Ada did."],
    },
    {"id": "t2", "question": "when?", "answer": "", "document_id": "Z", "section_ids": [], "evidence": []},
]
DOCUMENT = {
    "id": "A",
    "title": "About",
    "sections": [
        {
            "id": "s1",
            "heading": "One",
            "level": 1,
            "content": "first",
            "subsections": [{"id": "s2", "heading": "Two", "level": 2, "content": "second"}],
        },
        {"id": "s3", "heading": "Three", "level": 1, "content": "third", "subsections": []},
    ],
}
KEYED = {"queries": {"q1": "red", "q2": "blue"}, "corpus": {}, "relevant_docs": {"q1": ["d1"], "q2": {"d2": 2}}}
Write = Callable[[Path], Path]


def trec(folder: Path) -> Path:
    write_file(folder / "qrels.txt", QRELS_TXT)
    write_file(folder / "topics.tsv", TOPICS_TSV)
    return folder


def two_files(folder: Path) -> Path:
    write_file(folder / "asked.jsonl", '{"_id": "q1", "text": "red"}\n')
    write_file(folder / "qrels.txt", "q1 0 d1 1\n")
    return folder


def sectioned(folder: Path, truth: Any = TRUTH) -> Path:
    (folder / "documents").mkdir(exist_ok=True)
    write_file(folder / "documents/a.json", DOCUMENT)
    write_file(folder / "ground_truth.json", truth)
    return folder


def beir(folder: Path) -> Path:
    (folder / "qrels").mkdir()
    write_file(folder / "queries.jsonl", '{"_id": "q1", "text": "red"}\n')
    write_file(folder / "qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return folder


SCHEMA1 = {"queries": [{"query_id": "q1", "query": "red", "relevant_doc_refs": ["u1"]}]}
VALID: dict[str, Write] = {
    "benchbench-json": lambda folder: write_file(folder / "a.txt", SCHEMA1),
    "beir": beir,
    "trec": trec,
    "flowbaby": lambda folder: write_dataset(folder / "golden"),
    "sectioned": sectioned,
    "module-queries": lambda folder: write_file(folder / "modules.json", MODULES),
    "quepid-ratings": lambda folder: write_file(folder / "case.csv", tool_samples.QUEPID_CSV),
    "quepid-snapshot": lambda folder: write_file(folder / "snapshot.json", tool_samples.SNAPSHOT),
    "rank-eval": lambda folder: write_file(folder / "body.json", tool_samples.RANK_EVAL),
    "opensearch-judgments": lambda folder: write_file(folder / "list.json", tool_samples.JUDGMENTS),
    "opensearch-queries": lambda folder: write_file(folder / "set.json", tool_samples.QUERY_SET),
    "keyed": lambda folder: write_file(folder / "keyed.json", KEYED),
    "query-log": lambda folder: write_file(folder / "log.csv", tool_samples.LOG),
    "table": lambda folder: write_file(folder / "judged.csv", TABLE),
    "two-files": two_files,
}


def refusal_of(path: Path, **options: Any) -> str:
    with pytest.raises(BenchbenchError) as caught:
        check(read_dataset(path, **options))
    assert caught.value.message.endswith(".")
    return caught.value.message


def judgments(record: DatasetRecord) -> dict[str, dict[str, int]]:
    return {query.key: {str(j.doc_ref): j.grade for j in query.judgments} for query in record.queries}
