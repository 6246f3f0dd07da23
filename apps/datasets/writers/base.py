"""The base of writers, and the facts of queries and judgments that all of them write alike."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.local_files.placing import Files


class WriteError(DatasetError):
    """A dataset that a format would make wrong; the sentence names query and way out."""

    code = "dataset_export"


@dataclass(frozen=True, slots=True)
class Writer:
    """A format by the name that people know it by.

    `fit` returns what the format can hold of a dataset, which is what its reader reads again; it leaves out, and raises
    WriteError for what would become wrong. `files` writes a dataset that fits: one file, or those of a directory by
    their relative names. `extension` is that of the one file, "" of a directory. `cautions` yields sentences about what
    its reader would not take again, though it is written.
    """

    label: str
    extension: str
    content_type: str
    fit: Callable[[DatasetRecord], DatasetRecord]
    files: Callable[[DatasetRecord], Files]
    cautions: Callable[[DatasetRecord], Iterable[str]] = lambda record: ()


def kept(query: QueryRecord, judgments: list[JudgmentRecord], *names: str, **changed: Any) -> QueryRecord:
    """Return a query with only these of its fields, and others where they are `changed`."""
    values = {name: getattr(query, name) for name in names} | changed
    return QueryRecord(query.key, query.text, judgments, **values)


def by_document(query: QueryRecord, *, grades: Collection[int] | None = None, label: str) -> list[JudgmentRecord]:
    """Return the judgments of a query by their `document_id` alone.

    Raises WriteError for one that has none, for two that have the same, and for a grade that is not among `grades`.
    """
    judgments = []
    seen = set()
    for judgment in query.judgments:
        document = judgment.doc_ref.get("document_id")
        if not document:
            raise WriteError(
                f"The query {query.key[:60]!a} judges {shown(judgment)}, which has no document_id, and {label} names "
                "documents by it: give the --mapping that knows the documents, or choose another format.",
                field="format",
            )
        if document in seen:
            raise WriteError(
                f"The query {query.key[:60]!a} judges the document_id {document[:60]!a} twice, by other references "
                f"besides it that {label} does not hold: choose another format.",
                field="format",
            )
        seen.add(document)
        judgments.append(JudgmentRecord({"document_id": document}, graded(query, judgment, grades, label=label)))
    return judgments


def graded(query: QueryRecord, judgment: JudgmentRecord, grades: Collection[int] | None, *, label: str) -> int:
    """Return the grade of a judgment; raise WriteError where it is not among `grades`."""
    if grades is None or judgment.grade in grades:
        return judgment.grade
    *others, last = map(str, grades)
    known = f"{', '.join(others)} and {last}" if others else f"the grade {last}"
    raise WriteError(
        f"The query {query.key[:60]!a} gives {shown(judgment)} the grade {judgment.grade}, and {label} knows {known}: "
        "choose another format.",
        field="format",
    )


def shown(judgment: JudgmentRecord) -> str:
    """Name a judgment's document in a sentence."""
    return ", ".join(f"{key} {str(value)[:60]!a}" for key, value in judgment.doc_ref.items())
