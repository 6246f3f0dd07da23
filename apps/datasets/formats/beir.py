"""BEIR directories, read and written: queries.jsonl and qrels/SPLIT.tsv, `.gz` too."""

import re
from dataclasses import replace
from pathlib import Path

from apps.datasets.formats.pairs import read_pair
from apps.datasets.formats.writing import WriteError, merge_judgments, trim_query, yield_rows
from apps.datasets.records import DatasetRecord, QueryRecord
from benchbench.files import beir
from benchbench.local_files.placing import Files


def read_beir(directory: Path, *, split: str = "test") -> DatasetRecord:
    """Return the queries that a split judges, in file order, with their judgments.

    A judgment refers to the document whose external_id is its corpus-id; a grade is any integer. Raises an error with
    file and line, for example for a judgment of a query that queries.jsonl lacks, or for a document judged twice with
    different grades.
    """
    qrels = beir.find_qrels(directory, split)
    record = read_pair(
        beir.find_queries(directory),
        qrels,
        kinds=("beir-lines", "beir-qrels"),
        name=directory.resolve().name,
        split=split,
    )
    return replace(record, source_format="beir", metadata={"split": split})


SPLIT = "test"  # for queries without a split
FILE_NAME = re.compile(r"\w[\w.-]*")


def fit(record: DatasetRecord) -> DatasetRecord:
    """Return the judged queries with their metadata; judgments use document_id, grades are any integers."""
    queries = [_fit(query) for query in record.queries if query.judgments]
    splits = list(dict.fromkeys(query.split for query in queries))
    return DatasetRecord(
        record.name,
        queries,
        source_format="beir",
        metadata={"split": splits[0]} if len(splits) == 1 else {},
    )


def build_files(record: DatasetRecord) -> Files:
    splits: dict[str, list[QueryRecord]] = {}
    for query in record.queries:
        splits.setdefault(query.split, []).append(query)
    queries = (beir.Query(query.key, query.text, query.metadata) for query in record.queries)
    qrels = {f"qrels/{split}.tsv": beir.write_qrels(yield_rows(of_split)) for split, of_split in splits.items()}
    return {"queries.jsonl": beir.write_queries(queries), **qrels}


def _fit(query: QueryRecord) -> QueryRecord:
    split = query.split or SPLIT
    if not FILE_NAME.fullmatch(split):
        raise WriteError(
            f"The query {query.key[:60]!a} is in the split {split!a}, which cannot be the name of a file as BEIR's "
            "splits are: choose another format.",
            field="format",
        )
    return trim_query(query, merge_judgments(query, label="BEIR"), "metadata", split=split)
