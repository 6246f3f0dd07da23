"""Writing BenchBench JSON, schema 1.0."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from django.conf import settings

from apps.datasets.formats.schema1 import GRADES, OWN_FIELDS, SCHEMA_VERSION, is_own
from apps.datasets.formats.writing import WriteError, check_grade, trim_query
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord, find_doc_ref_fault
from benchbench.local_files.placing import Files
from benchbench.reading.strict_json import dump_array, dump_json

LABEL = "BenchBench JSON"
ABOUT = ("name", "description", "version", "slice_definitions")


def fit(record: DatasetRecord) -> DatasetRecord:
    """Return the dataset without judges, notes on judgments, sections, and reserved keys of metadata."""
    return replace(
        record,
        queries=[_fit(query) for query in record.queries],
        label=record.label.strip(),
        metadata={key: value for key, value in record.metadata.items() if key not in ABOUT},
        source_format="benchbench-json",
    )


def build_files(record: DatasetRecord) -> Files:
    return {"dataset.json": _dump_record(record)}


def yield_cautions(record: DatasetRecord) -> Iterator[str]:
    """Yield sentences about parts above the reader's limits. Stops writing bytes at their limit."""
    beyond = []
    if len(record.queries) > (limit := settings.BENCHMARK_DATASET_MAX_QUERIES):
        beyond.append(f"{len(record.queries):,} queries, at most {limit:,} are allowed")
    greatest = max((len(query.judgments) for query in record.queries), default=0)
    if greatest > (limit := settings.BENCHMARK_DATASET_MAX_JUDGMENTS_PER_QUERY):
        beyond.append(f"{greatest:,} judgments of one query, at most {limit:,} are allowed")
    limit = settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES
    if any(size > limit for size in accumulate(len(piece.encode()) for piece in _dump_record(record))):
        beyond.append(f"more than {limit:,} bytes, which is the most that is allowed")
    if beyond:
        yield (
            f"{LABEL} is complete, but uploading or importing it again would be refused: it has "
            f"{'; '.join(beyond)}. Raise the limits, or choose another format."
        )


def _dump_record(record: DatasetRecord) -> Iterator[str]:
    about = {
        "name": record.name,
        "description": record.description,
        "version": record.label,
        "slice_definitions": record.slice_definitions,
    }
    metadata = {key: value for key, value in about.items() if value} | record.metadata
    yield f'{{"schema_version": {dump_json(SCHEMA_VERSION)},\n"metadata": {dump_json(metadata)},\n"queries": '
    yield from dump_array(map(_build_item, record.queries))
    yield "}\n"


def _build_item(query: QueryRecord) -> dict[str, object]:
    own_fields = {name: value for name in OWN_FIELDS if _is_stated(value := getattr(query, name))}
    return {
        "query_key": query.key,
        "query_text": query.text,
        "metadata": own_fields | query.metadata,
        "relevant_docs": [
            {"doc_ref": judgment.doc_ref, "relevance_grade": judgment.grade} for judgment in query.judgments
        ],
    }


def _is_stated(value: object) -> bool:
    """Return whether a query's own field differs from its default; only a weight is a number."""
    return bool(value) and value != 1


def _fit(query: QueryRecord) -> QueryRecord:
    for judgment in query.judgments:
        problem, _ = find_doc_ref_fault(judgment.doc_ref)
        if problem:
            raise WriteError(f"The query {query.key[:60]!a} has a judgment whose doc_ref {problem}.", field="format")
    grades = list(GRADES)
    return trim_query(
        query,
        [
            JudgmentRecord(judgment.doc_ref, check_grade(query, judgment, grades, label=LABEL))
            for judgment in query.judgments
        ],
        *OWN_FIELDS,
        metadata={key: value for key, value in query.metadata.items() if _is_free(key, value, query)},
    )


def _is_free(key: str, value: object, query: QueryRecord) -> bool:
    """Return whether a key of metadata can be written: the reader must not take it for the query's own field."""
    return key not in OWN_FIELDS or not (is_own(key, value) or _is_stated(getattr(query, key)))
