"""TREC judgments and the topics that they judge, read and written."""

import re
from dataclasses import replace
from pathlib import Path

from apps.datasets.formats.pairs import TOGETHER, list_files, read_pair
from apps.datasets.formats.writing import merge_judgments, yield_rows
from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord
from benchbench.files.sniffing import sniff
from benchbench.files.trec import Topic, write_qrels, write_topics
from benchbench.local_files.placing import Files


def read_trec(path: Path, *, topics: Path | None = None) -> DatasetRecord:
    """Return the judged topics in file order; a judgment refers to the document whose external_id is its docno.

    `path` is the file of judgments and `topics` the file of topics; or `path` is a directory with one of each, which
    are recognised by content. Topics without a judgment are left out and named in a warning, because trec_eval counts
    judged ones alone. Raises an error for judgments of a missing topic, for example.
    """
    qrels = path
    if path.is_dir():
        qrels, topics = _find_only_file(path, "trec-qrels"), topics or _find_only_file(path, "trec-topics")
    elif topics is None:
        raise DatasetError(
            f"{path.name} holds judgments but no texts of queries. Give the file of its topics too: {TOGETHER}.",
            field="topics",
        )
    name = path.resolve().name.removesuffix(".gz").removesuffix(".txt")
    record = read_pair(topics, qrels, kinds=("trec-topics", "trec-qrels"), name=name)
    return replace(record, source_format="trec")


def _find_only_file(directory: Path, kind: str) -> Path:
    files = [path for path in list_files(directory) if sniff(path) == kind]
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise DatasetError(
            f"{directory.name} must hold one file of {kind.removeprefix('trec-')}, and it has: {names}.", field="topics"
        )
    return files[0]


BREAK = re.compile(r"[\r\n]+")


def fit(record: DatasetRecord) -> DatasetRecord:
    """Return the judged queries, with texts on one line; judgments use document_id, grades are any integers."""
    queries = [
        QueryRecord(
            query.key,
            " ".join(filter(None, map(str.strip, BREAK.split(query.text)))),
            merge_judgments(query, label="TREC"),
        )
        for query in record.queries
        if query.judgments
    ]
    return DatasetRecord(record.name, queries, source_format="trec")


def build_files(record: DatasetRecord) -> Files:
    return {
        "topics.tsv": write_topics(Topic(query.key, query.text) for query in record.queries),
        "qrels.txt": write_qrels(yield_rows(record.queries)),
    }
