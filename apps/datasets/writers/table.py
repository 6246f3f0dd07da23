"""Writing judgments as a table: CSV or JSON Lines, a row for each judgment."""

from collections.abc import Iterator
from typing import Any

from apps.datasets.readers.table import OPTIONAL
from apps.datasets.records import DOC_REF_KEYS, DatasetRecord, JudgmentRecord, QueryRecord, doc_ref_fault
from apps.datasets.writers.base import WriteError
from benchbench.files.json_writing import lines
from benchbench.files.tables import write_csv
from benchbench.local_files.placing import Files

LABEL = "A table"
Row = dict[str, Any]


def fit(record: DatasetRecord) -> DatasetRecord:
    """Queries with the fields that have a column, without the white space around each; a grade is any integer."""
    return DatasetRecord(record.name, [_fit(query) for query in record.queries], source_format="table")


def csv_files(record: DatasetRecord) -> Files:
    columns = _columns(record)
    return {"judgments.csv": write_csv(columns, ([row.get(name) for name in columns] for row in _rows(record)))}


def jsonl_files(record: DatasetRecord) -> Files:
    columns = _columns(record)
    return {"judgments.jsonl": lines({name: row.get(name) for name in columns} for row in _rows(record))}


def _columns(record: DatasetRecord) -> list[str]:
    """Return the columns that hold anything; of references at least one, which a table needs."""
    keys = {key for query in record.queries for judgment in query.judgments for key in judgment.doc_ref}
    references = [key for key in DOC_REF_KEYS if key in (keys or {DOC_REF_KEYS[0]})]
    own = [name for name in OPTIONAL if any(getattr(query, name) for query in record.queries)]
    return ["query_key", "query_text", *references, "grade", *own]


def _rows(record: DatasetRecord) -> Iterator[Row]:
    """Yield a row for each judgment, and for each query without one. A query's own fields stand in all its rows."""
    for query in record.queries:
        own = {name: value for name in OPTIONAL if (value := getattr(query, name))}
        cells: Row = {"query_key": query.key, "query_text": query.text} | own
        for judgment in query.judgments:
            yield cells | judgment.doc_ref | {"grade": judgment.grade}
        if not query.judgments:
            yield cells


def _fit(query: QueryRecord) -> QueryRecord:
    judgments = []
    for judgment in query.judgments:
        what, _ = doc_ref_fault(judgment.doc_ref)
        if what:
            raise WriteError(f"The query {query.key[:60]!a} has a judgment whose doc_ref {what}.", field="format")
        doc_ref = {key: value.strip() for key, value in judgment.doc_ref.items()}
        judgments.append(JudgmentRecord(doc_ref, judgment.grade))
    if query.key != query.key.strip():
        raise WriteError(
            f"The query key {query.key[:60]!a} has white space around it, which {LABEL.lower()} does not hold: choose "
            "another format.",
            field="format",
        )
    own = {name: getattr(query, name).strip() for name in OPTIONAL}
    return QueryRecord(query.key, query.text.strip(), judgments, **own)
