"""Writing a BEIR directory: queries.jsonl and qrels/SPLIT.tsv, a file for each split."""

import re
from collections.abc import Iterator, Mapping

from apps.datasets.records import DatasetRecord, QueryRecord
from apps.datasets.writers.base import WriteError, by_document, kept
from benchbench.files import beir
from benchbench.local_files.placing import Files

LABEL = "BEIR"
SPLIT = "test"  # of queries that are in none
FILE_NAME = re.compile(r"\w[\w.-]*")


def fit(record: DatasetRecord) -> DatasetRecord:
    """Judged queries with their metadata; a judgment is by document_id, its grade any integer."""
    queries = [_fit(query) for query in record.queries if query.judgments]
    splits = list(dict.fromkeys(query.split for query in queries))
    return DatasetRecord(
        record.name,
        queries,
        source_format="beir",
        metadata={"split": splits[0]} if len(splits) == 1 else {},
    )


def files(record: DatasetRecord) -> Files:
    splits: dict[str, list[QueryRecord]] = {}
    for query in record.queries:
        splits.setdefault(query.split, []).append(query)
    queries = (beir.Query(query.key, query.text, query.metadata) for query in record.queries)
    return {"queries.jsonl": beir.write_queries(queries), **dict(_qrels(splits))}


def _qrels(splits: Mapping[str, list[QueryRecord]]) -> Iterator[tuple[str, Iterator[str]]]:
    for split, queries in splits.items():
        yield (
            f"qrels/{split}.tsv",
            beir.write_qrels(
                (query.key, judgment.doc_ref["document_id"], judgment.grade)
                for query in queries
                for judgment in query.judgments
            ),
        )


def _fit(query: QueryRecord) -> QueryRecord:
    split = query.split or SPLIT
    if not FILE_NAME.fullmatch(split):
        raise WriteError(
            f"The query {query.key[:60]!a} is in the split {split!a}, which cannot be the name of a file as BEIR's "
            "splits are: choose another format.",
            field="format",
        )
    return kept(query, by_document(query, label=LABEL), "metadata", split=split)
