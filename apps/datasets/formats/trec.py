"""TREC judgments and the topics that they judge, read and written."""

import re
from collections.abc import Iterable
from pathlib import Path

from apps.datasets.formats.writing import merge_judgments, yield_rows
from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, build_judgments
from benchbench.decimals import list_some
from benchbench.files.sniffing import sniff
from benchbench.files.trec import Topic, decode_ids, read_qrels, read_topics, write_qrels, write_topics
from benchbench.local_files.placing import Files


def read_trec(path: Path, *, topics: Path | None = None) -> DatasetRecord:
    """Return the judged topics in file order; a judgment refers to the document whose external_id is its docno.

    `path` is the file of judgments and `topics` the file of topics; or `path` is a directory with one of each, which
    are recognised by content. Topics without a judgment are left out and named in a warning, because trec_eval counts
    judged ones alone. Raises an error for judgments of a missing topic, for example.
    """
    if path.is_dir():
        qrels, topics = _find_only_file(path, "trec-qrels"), topics or _find_only_file(path, "trec-topics")
    elif topics is None:
        raise DatasetError(f"{path.name} holds judgments but no queries: name the file of topics too.", field="topics")
    else:
        qrels = path
    all_topics = read_topics(topics)
    grades = read_qrels(qrels)
    topic_keys = {topic.key for topic in all_topics}
    if unknown := next((key for key in grades if key not in topic_keys), None):
        raise DatasetError(f"{qrels.name} judges the query {unknown[:60]!a}, which {topics.name} does not have.")
    return DatasetRecord(
        name=path.resolve().name.removesuffix(".gz").removesuffix(".txt"),
        queries=[_query(topic, grades[topic.key], qrels) for topic in all_topics if topic.key in grades],
        source_format="trec",
        warnings=describe_unjudged([topic.key for topic in all_topics if topic.key not in grades]),
    )


def _query(topic: Topic, grades: dict[bytes, int], qrels: Path) -> QueryRecord:
    documents = decode_ids(list(grades), location=f"{qrels.name}, query {topic.key[:60]!a},")
    about = {"description": topic.description, "narrative": topic.narrative}
    return QueryRecord(
        key=topic.key,
        text=topic.text,
        judgments=build_judgments(dict(zip(documents, grades.values(), strict=True))),
        metadata={name: text for name, text in about.items() if text},
    )


def _find_only_file(directory: Path, kind: str) -> Path:
    files = [path for path in sorted(directory.iterdir()) if path.is_file() and sniff(path) == kind]
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise DatasetError(
            f"{directory.name} must hold one file of {kind.removeprefix('trec-')}, and it has: {names}.", field="topics"
        )
    return files[0]


def describe_unjudged(keys: Iterable[str]) -> list[str]:
    """Return a warning that names the unjudged topics, if any."""
    keys = list(keys)
    return [f"Topics without a judgment, left out: {list_some(keys)}."] if keys else []


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
