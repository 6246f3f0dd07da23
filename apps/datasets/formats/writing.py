"""Common steps of all writers, and the parts of a dataset that an export leaves out."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from apps.datasets.records import (
    JUDGMENT_FIELDS,
    QUERY_FIELDS,
    DatasetError,
    DatasetRecord,
    JudgmentRecord,
    QueryRecord,
)
from benchbench.decimals import list_some
from benchbench.reading.strict_json import dump_canonical


class WriteError(DatasetError):
    """A format would distort the dataset; the message names the query and the remedy."""

    code = "dataset_export"


def trim_query(query: QueryRecord, judgments: list[JudgmentRecord], *names: str, **changes: object) -> QueryRecord:
    """Return a query with only the fields in `names`, and with the values of `changes`."""
    values = {name: getattr(query, name) for name in names} | changes
    return QueryRecord(query.key, query.text, judgments, **values)


def yield_rows(queries: Iterable[QueryRecord]) -> Iterator[tuple[str, str, int]]:
    """Yield query, document and grade of each judgment by document_id."""
    for query in queries:
        for judgment in query.judgments:
            yield query.key, judgment.doc_ref["document_id"], judgment.grade


def merge_judgments(query: QueryRecord, *, grades: Collection[int] | None = None, label: str) -> list[JudgmentRecord]:
    """Return the judgments of a query by their `document_id` alone.

    Raises WriteError for a judgment without a document_id, a repeated document_id, and a grade that is not in `grades`.
    """
    judgments = []
    seen = set()
    for judgment in query.judgments:
        document = judgment.doc_ref.get("document_id")
        if not document:
            raise WriteError(
                f"The query {query.key[:60]!a} judges {cite(judgment)}, which has no document_id, and {label} names "
                "documents by it: export a mapping that has the documents, or choose another format.",
                field="format",
                by_command="--mapping MAPPING",
            )
        if document in seen:
            raise WriteError(
                f"The query {query.key[:60]!a} judges the document_id {document[:60]!a} twice, with other "
                f"references that {label} cannot hold: choose another format.",
                field="format",
            )
        seen.add(document)
        judgments.append(JudgmentRecord({"document_id": document}, check_grade(query, judgment, grades, label=label)))
    return judgments


def check_grade(query: QueryRecord, judgment: JudgmentRecord, grades: Collection[int] | None, *, label: str) -> int:
    """Return the grade of a judgment. Raises WriteError if it is not in `grades`."""
    if grades is None or judgment.grade in grades:
        return judgment.grade
    *leading, last = map(str, grades)
    scale = f"{', '.join(leading)} and {last}" if leading else f"the grade {last}"
    raise WriteError(
        f"The query {query.key[:60]!a} gives {cite(judgment)} the grade {judgment.grade}, but {label} allows {scale}: "
        "choose another format.",
        field="format",
    )


def cite(judgment: JudgmentRecord) -> str:
    """Return the name of a judgment's document for a sentence."""
    return ", ".join(f"{key} {str(value)[:60]!a}" for key, value in judgment.doc_ref.items())


ABOUT = ("description", "label", "metadata", "slice_definitions")
BLANK: tuple[object, ...] = ("", None, [], {}, ())
DEFAULTS = {field.name: field.default for field in (*fields(JudgmentRecord), *fields(QueryRecord))}
Count = Counter[tuple[str, str]]  # of fields, by whose they are


def describe_losses(record: DatasetRecord, fitted_record: DatasetRecord, *, label: str) -> tuple[str, ...]:
    """Return sentences about losses: differences of `fitted_record`, the part that a format can hold, from `record`."""
    by_key = {query.key: query for query in fitted_record.queries}
    missing = [query.key for query in record.queries if query.key not in by_key]
    left_out: Count = Counter()
    changed: Count = Counter()
    for noun, names, original, fitted in _pair_objects(record, fitted_record, by_key):
        for name in names:
            value, fitted_value = getattr(original, name), getattr(fitted, name)
            if value == fitted_value or dump_canonical(value) == dump_canonical(fitted_value):
                continue
            is_gone = fitted_value in BLANK or fitted_value == DEFAULTS.get(name)
            (left_out if is_gone else changed)[noun, name] += 1
    return tuple(_render_losses(label, missing, left_out, changed))


def _pair_objects(
    record: DatasetRecord, fitted_record: DatasetRecord, by_key: Mapping[str, QueryRecord]
) -> Iterator[tuple[str, Sequence[str], object, object]]:
    """Yield the pairs to compare: the kind of object, its fields, and the two objects."""
    yield "", ABOUT, record, fitted_record
    for query in record.queries:
        if fitted := by_key.get(query.key):
            yield "quer", QUERY_FIELDS, query, fitted
            for judgments in zip(query.judgments, fitted.judgments, strict=True):
                yield "judgment", JUDGMENT_FIELDS, *judgments


def _render_losses(label: str, missing: list[str], left_out: Count, changed: Count) -> Iterator[str]:
    if missing:
        yield f"{label} cannot hold queries without a judgment: {list_some(missing)}."
    if left_out:
        yield f"{label} cannot hold {'; '.join(_describe_fields(left_out))}."
    if changed:
        yield f"{label} changes, or holds only in part, {'; '.join(_describe_fields(changed))}."


def _describe_fields(count: Count) -> Iterator[str]:
    for (noun, name), number in count.items():
        ending = {"quer": ("y", "ies")}.get(noun, ("", "s"))[number != 1]
        yield f"{name} of {number:,} {noun}{ending}" if noun else f"the {name} of the dataset"
