"""Reading BenchBench JSON, schema 1.0: the format of uploads."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.datasets.records import (
    LENGTHS,
    SLICE_LENGTH,
    DatasetError,
    DatasetRecord,
    JudgmentRecord,
    QueryRecord,
    as_doc_ref,
    doc_ref_fault,
    some_of,
)
from benchbench.reading.fields import Fields
from benchbench.reading.strict_json import canonical, decode, kind, parse, raw_chunks

SCHEMA_VERSION = "1.0"
GRADES = {grade: grade for grade in range(4)} | {str(grade): grade for grade in range(4)}
DEFAULT_GRADE = 2
# Keys of a query's metadata that become the query's own fields.
STRINGS = ("category", "difficulty", "query_type", "split", "expected_answer", "notes")
OWN_FIELDS = (*STRINGS, "slices", "filters", "evidence")
# Keys of a dataset's metadata that become its own, by what they hold.
ABOUT: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "description": str,
    "version": (str, int, float),
    "slice_definitions": dict,
}


@dataclass(frozen=True)
class Limits:
    """How much this reader takes: bytes of the file, queries, judgments a query."""

    upload_bytes: int
    queries: int
    judgments_per_query: int


class DatasetTooLargeError(DatasetError):
    """The file has more bytes than an upload may have."""

    code = "too_large"
    status = 413


def configured_limits() -> Limits:
    return Limits(
        upload_bytes=settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES,
        queries=settings.BENCHMARK_DATASET_MAX_QUERIES,
        judgments_per_query=settings.BENCHMARK_DATASET_MAX_JUDGMENTS_PER_QUERY,
    )


def read_schema1(path: Path) -> DatasetRecord:
    """Return the dataset that a JSON file states, within the configured limits, `.gz` unpacked; see `parse_schema1`."""
    limits = configured_limits()
    content = bytearray()
    for chunk in raw_chunks(path):
        content += chunk
        if len(content) > limits.upload_bytes:
            break
    return parse_schema1(bytes(content), limits=limits, where=path.name)


def parse_schema1(content: bytes, *, limits: Limits, where: str = "The file") -> DatasetRecord:
    """Return the dataset that the bytes of a JSON file of schema 1.0 state.

        {schema_version = "1.0", metadata {name, description, version, slice_definitions, …},
         queries: [{query_key (or query_id), query_text (or query), metadata {},
                    relevant_docs (or relevant_doc_refs): [{doc_ref, relevance_grade = 2}]}]}

    A doc_ref is an object with any of DOC_REF_KEYS, or a string that is the uri; an item of relevant_docs may be that
    string itself; a key of it that is null is not stated. A grade is an integer 0..3, or such an integer as a string. A
    judgment stated twice alike counts once and is counted as duplicate. Metadata is free, or null: a key of ABOUT or
    OWN_FIELDS that holds something else than ours does stays plain metadata, with a warning. Anything else raises a
    `BenchbenchError` with status 400 (413 for too many bytes) and a sentence that names query and key; `where` begins
    those that are about the whole.
    """
    if len(content) > limits.upload_bytes:
        raise DatasetTooLargeError(f"{where} has more than {limits.upload_bytes:,} bytes, the most that is allowed.")
    value = parse(decode(content, where=where), where=where)
    fields = Fields(value, ("schema_version", "metadata", "queries"))
    _check_schema_version(fields)
    queries = fields.items("queries")
    if not queries:
        raise fields.error("queries", "is empty: a dataset needs at least one query")
    if len(queries) > limits.queries:
        raise fields.error("queries", f"has {len(queries):,} queries: at most {limits.queries:,} are allowed")
    read = [_query(item, index, limits) for index, item in enumerate(queries)]
    _refuse_repeated_keys([query for query, _ in read])
    return _dataset(fields, [query for query, _ in read], sum(duplicates for _, duplicates in read))


def _check_schema_version(fields: Fields) -> None:
    stated = fields.string("schema_version", default=SCHEMA_VERSION)
    if stated != SCHEMA_VERSION:
        raise fields.error("schema_version", f'is {stated[:40]!a}: this reader knows "{SCHEMA_VERSION}"')


def _dataset(fields: Fields, queries: list[QueryRecord], duplicates: int) -> DatasetRecord:
    metadata = _metadata(fields)
    about = {key: metadata.pop(key) for key, held in ABOUT.items() if _holds(metadata.get(key), held)}
    return DatasetRecord(
        name=about.get("name", ""),
        description=about.get("description", ""),
        label=str(about.get("version", "")).strip(),
        schema_version=SCHEMA_VERSION,
        source_format="benchbench-json",
        slice_definitions=about.get("slice_definitions", {}),
        metadata=metadata,
        queries=queries,
        duplicates=duplicates,
        warnings=[*_plain(metadata, queries), *_restricted(queries)],
    )


def _metadata(fields: Fields) -> dict[str, Any]:
    return {} if fields.values.get("metadata") is None else dict(fields.mapping("metadata"))


def _holds(value: Any, held: type | tuple[type, ...]) -> bool:
    return isinstance(value, held) and not isinstance(value, bool)


def is_own(name: str, value: Any) -> bool:
    """Tell whether a key of a query's metadata, one of OWN_FIELDS, holds what the query's own field can."""
    if name in STRINGS:
        return isinstance(value, str) and len(value) <= LENGTHS.get(name, len(value))
    if name == "slices" and isinstance(value, list):
        return all(isinstance(one, str) and one.strip() and len(one) <= SLICE_LENGTH for one in value)
    return isinstance(value, dict if name == "filters" else list)


def _plain(about: dict[str, Any], queries: list[QueryRecord]) -> Iterator[str]:
    """Yield what has the name of a field of ours and holds something else."""
    for key in ABOUT:
        if about.get(key) is not None:
            yield f"metadata.{key} is {kind(about[key])}: it stays plain metadata, and is not the dataset's {key}."
    for name in OWN_FIELDS:
        if keys := [query.key for query in queries if query.metadata.get(name) is not None]:
            yield (
                f"metadata.{name} is not what the {name} of a query {'are' if name.endswith('s') else 'is'}, in "
                f"{some_of(keys)}: it stays plain metadata, and is not used."
            )


def _restricted(queries: list[QueryRecord]) -> Iterator[str]:
    if filtered := [query for query in queries if query.filters]:
        asked = sorted({name for query in filtered for name in query.filters})
        yield (
            f"metadata.filters restricts the search: for {some_of([query.key for query in filtered])} only documents "
            f"are searched whose metadata has the {some_of(asked)} that the query states."
        )


def _query(item: Any, index: int, limits: Limits) -> tuple[QueryRecord, int]:
    """Return a query and how many of its judgments were stated before."""
    known = ("query_key", "query_id", "query_text", "query", "metadata", "relevant_docs", "relevant_doc_refs")
    fields = Fields(item, known, prefix=f"queries[{index}].")
    key = fields.filled("query_key", alias="query_id")
    if len(key) > LENGTHS["key"]:
        raise fields.error("query_key", f"has more than {LENGTHS['key']} characters")
    fields = Fields(item, known, prefix=f"queries[{index}].", suffix=f" (query {key[:60]!a})")
    text = fields.filled("query_text", alias="query")
    judged = fields.items("relevant_docs", alias="relevant_doc_refs", default=[])
    if len(judged) > limits.judgments_per_query:
        raise fields.error(
            "relevant_docs",
            f"has {len(judged):,} judgments: at most {limits.judgments_per_query:,} a query are allowed",
        )
    metadata = _metadata(fields)
    own = {name: metadata.pop(name) for name in OWN_FIELDS if name in metadata and is_own(name, metadata[name])}
    own["slices"] = list(dict.fromkeys(own.get("slices", [])))
    judgments, duplicates = _judgments(judged, fields)
    return QueryRecord(key=key, text=text, judgments=judgments, metadata=metadata, **own), duplicates


def _judgments(items: list[Any], query: Fields) -> tuple[list[JudgmentRecord], int]:
    judgments: dict[str, JudgmentRecord] = {}
    for index, item in enumerate(items):
        prefix = f"{query.prefix}relevant_docs[{index}]."
        if isinstance(item, str):
            item = {"doc_ref": item}
        fields = Fields(item, ("doc_ref", "relevance_grade"), prefix=prefix, suffix=query.suffix)
        judgment = JudgmentRecord(doc_ref=_doc_ref(fields), grade=_grade(fields))
        before = judgments.setdefault(canonical(judgment.doc_ref), judgment)
        if before.grade != judgment.grade:
            raise fields.error(
                "relevance_grade", f"is {judgment.grade}, but the same document was graded {before.grade} before"
            )
    return list(judgments.values()), len(items) - len(judgments)


def _doc_ref(fields: Fields) -> dict[str, str]:
    value = fields.value("doc_ref")
    doc_ref = as_doc_ref(value)
    if found := doc_ref_fault(doc_ref):
        raise fields.error("doc_ref", found)
    return dict(doc_ref)


def _grade(fields: Fields) -> int:
    value = fields.value("relevance_grade", default=DEFAULT_GRADE)
    if type(value) in (int, str) and value in GRADES:
        return GRADES[value]
    raise fields.error("relevance_grade", f"must be an integer from 0 to 3, not {json.dumps(value)[:40]}")


def _refuse_repeated_keys(queries: list[QueryRecord]) -> None:
    first: dict[str, int] = {}
    for index, query in enumerate(queries):
        earlier = first.setdefault(query.key, index)
        if earlier != index:
            raise DatasetError(
                f"queries[{index}].query_key is {query.key[:60]!a}, as in queries[{earlier}]: a key names one query.",
                field=f"queries[{index}].query_key",
            )
