"""BEIR directories, read and written: queries.jsonl and qrels/SPLIT.tsv, `.gz` too."""

import re
from pathlib import Path
from typing import Any

from apps.datasets.formats.schema1 import yield_weight_warnings
from apps.datasets.formats.writing import WriteError, merge_judgments, trim_query, yield_rows
from apps.datasets.records import DatasetError, DatasetRecord, QueryRecord, build_judgments
from benchbench.files import beir
from benchbench.ir.demand import is_weight
from benchbench.local_files.placing import Files


def read_beir(directory: Path, *, split: str = "test") -> DatasetRecord:
    """Return the queries that a split judges, in file order, with their judgments.

    A judgment refers to the document whose external_id is its corpus-id; a grade is any integer. Raises an error with
    file and line, for example for a judgment of a query that queries.jsonl lacks, or for a document judged twice with
    different grades.
    """
    qrels = beir.read_qrels(beir.find_qrels(directory, split))
    queries = [
        QueryRecord(
            key=query.key,
            text=query.text,
            split=split,
            judgments=build_judgments(qrels.grades[query.key]),
            **_split_weight(query.metadata),
        )
        for query in beir.read_queries(beir.find_queries(directory))
        if query.key in qrels.grades
    ]
    query_keys = {query.key for query in queries}
    for key, location in qrels.places.items():
        if key not in query_keys:
            raise DatasetError(f"{location} judges the query {key!a}, which queries.jsonl does not have.")
    return DatasetRecord(
        name=directory.resolve().name,
        queries=queries,
        source_format="beir",
        metadata={"split": split},
        duplicates=qrels.duplicates,
        warnings=tuple(yield_weight_warnings(queries)),
    )


def _split_weight(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return a query's weight, and its metadata without it. A `weight` that can be none stays metadata."""
    if not is_weight(metadata.get("weight")):
        return {"metadata": metadata}
    free = {key: value for key, value in metadata.items() if key != "weight"}
    return {"metadata": free, "weight": float(metadata["weight"])}


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
    queries = (beir.Query(query.key, query.text, _merge_weight(query)) for query in record.queries)
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
    metadata = _split_weight(query.metadata)["metadata"]  # the reader would take it for the weight
    if query.weight != 1:
        metadata = {key: value for key, value in metadata.items() if key != "weight"}
    return trim_query(query, merge_judgments(query, label="BEIR"), "weight", split=split, metadata=metadata)


def _merge_weight(query: QueryRecord) -> dict[str, Any]:
    return query.metadata | ({"weight": query.weight} if query.weight != 1 else {})
