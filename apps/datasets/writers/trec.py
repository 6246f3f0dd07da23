"""Writing TREC judgments and the topics that they judge."""

import re

from apps.datasets.records import DatasetRecord, QueryRecord
from apps.datasets.writers.base import by_document
from benchbench.files.topics import Topic, write_topics
from benchbench.files.trec import write_qrels
from benchbench.local_files.placing import Files

LABEL = "TREC"
BREAK = re.compile(r"\s*[\r\n]+\s*")


def fit(record: DatasetRecord) -> DatasetRecord:
    """Judged queries, their texts on one line; a judgment is by document_id, its grade any integer."""
    queries = [_fit(query) for query in record.queries if query.judgments]
    return DatasetRecord(record.name, queries, source_format="trec")


def files(record: DatasetRecord) -> Files:
    return {
        "topics.tsv": write_topics(Topic(query.key, query.text) for query in record.queries),
        "qrels.txt": write_qrels(
            (query.key, judgment.doc_ref["document_id"], judgment.grade)
            for query in record.queries
            for judgment in query.judgments
        ),
    }


def _fit(query: QueryRecord) -> QueryRecord:
    return QueryRecord(query.key, BREAK.sub(" ", query.text).strip(), by_document(query, label=LABEL))
