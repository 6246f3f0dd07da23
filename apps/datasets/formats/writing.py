"""Common steps of all writers, and the parts of a dataset that an export leaves out."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from apps.datasets.records import (
    JUDGMENT_FIELDS,
    QUERY_FIELDS,
    DatasetError,
    DatasetRecord,
    JudgmentRecord,
    QueryRecord,
)
from benchbench.decimals import some_of
from benchbench.reading.strict_json import canonical


class WriteError(DatasetError):
    """A format would distort the dataset; the message names the query and the remedy."""

    code = "dataset_export"


def kept(query: QueryRecord, judgments: list[JudgmentRecord], *names: str, **changed: Any) -> QueryRecord:
    """Return a query with only the given fields, and with `changed` values."""
    values = {name: getattr(query, name) for name in names} | changed
    return QueryRecord(query.key, query.text, judgments, **values)


def rows_of(queries: Iterable[QueryRecord]) -> Iterator[tuple[str, str, int]]:
    """Yield query, document and grade of each judgment by document_id."""
    for query in queries:
        for judgment in query.judgments:
            yield query.key, judgment.doc_ref["document_id"], judgment.grade


def by_document(query: QueryRecord, *, grades: Collection[int] | None = None, label: str) -> list[JudgmentRecord]:
    """Return the judgments of a query by their `document_id` alone.

    Raises WriteError for a judgment without a document_id, a repeated document_id, and a grade that is not in `grades`.
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
    """Return the grade of a judgment. Raises WriteError if it is not in `grades`."""
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
    """Return the name of a judgment's document for a sentence."""
    return ", ".join(f"{key} {str(value)[:60]!a}" for key, value in judgment.doc_ref.items())


ABOUT = ("description", "label", "metadata", "slice_definitions")
BLANK: tuple[Any, ...] = ("", None, [], {}, ())
DEFAULTS = {field.name: field.default for field in fields(JudgmentRecord)}
Count = Counter[tuple[str, str]]  # of fields, by whose they are


def losses(record: DatasetRecord, held: DatasetRecord, *, label: str) -> tuple[str, ...]:
    """Return sentences about losses: differences of `held`, the part that a format can hold, from `record`."""
    by_key = {query.key: query for query in held.queries}
    missing = [query.key for query in record.queries if query.key not in by_key]
    left_out: Count = Counter()
    changed: Count = Counter()
    for whose, names, whole, part in _pairs(record, held, by_key):
        for name in names:
            value, there = getattr(whole, name), getattr(part, name)
            if value == there or canonical(value) == canonical(there):
                continue
            is_gone = there in BLANK or (whose == "judgment" and there == DEFAULTS.get(name))
            (left_out if is_gone else changed)[whose, name] += 1
    return tuple(_sentences(label, missing, left_out, changed))


def _pairs(
    record: DatasetRecord, held: DatasetRecord, by_key: Mapping[str, QueryRecord]
) -> Iterator[tuple[str, Sequence[str], object, object]]:
    """Yield the pairs to compare: the kind of object, its fields, and the two objects."""
    yield "", ABOUT, record, held
    for query in record.queries:
        if part := by_key.get(query.key):
            yield "quer", QUERY_FIELDS, query, part
            for judgments in zip(query.judgments, part.judgments, strict=True):
                yield "judgment", JUDGMENT_FIELDS, *judgments


def _sentences(label: str, missing: list[str], left_out: Count, changed: Count) -> Iterator[str]:
    if missing:
        yield f"{label} has no place for queries without a judgment: {some_of(missing)}."
    if left_out:
        yield f"{label} has no place for {'; '.join(_fields(left_out))}."
    if changed:
        yield f"{label} states otherwise, or in part, {'; '.join(_fields(changed))}."


def _fields(count: Count) -> Iterator[str]:
    for (whose, name), number in count.items():
        ending = {"quer": ("y", "ies")}.get(whose, ("", "s"))[number != 1]
        yield f"{name} of {number:,} {whose}{ending}" if whose else f"the {name} of the dataset"
