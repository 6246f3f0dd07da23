"""Reading queries and judgments of a BEIR directory: queries.jsonl and qrels/SPLIT.tsv, `.gz` too."""

from pathlib import Path

from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.files.beir import find_qrels, find_queries, read_qrels, read_queries


def read_beir(directory: Path, *, split: str = "test") -> DatasetRecord:
    """Return the queries that a split judges, in file order, with their judgments.

    A judgment refers to the document whose external_id is its corpus-id; a grade is any integer. Raises a sentence that
    names file and line, among others for a judgment of a query that queries.jsonl lacks and for a document judged
    twice with different grades.
    """
    qrels = read_qrels(find_qrels(directory, split))
    queries = [
        QueryRecord(
            key=query.key,
            text=query.text,
            split=split,
            metadata=query.metadata,
            judgments=[
                JudgmentRecord({"document_id": document}, grade) for document, grade in qrels.grades[query.key].items()
            ],
        )
        for query in read_queries(find_queries(directory))
        if query.key in qrels.grades
    ]
    there = {query.key for query in queries}
    for key, place in qrels.places.items():
        if key not in there:
            raise DatasetError(f"{place} judges the query {key!a}, which queries.jsonl does not have.")
    return DatasetRecord(
        name=directory.resolve().name,
        queries=queries,
        source_format="beir",
        metadata={"split": split},
        duplicates=qrels.duplicates,
    )
