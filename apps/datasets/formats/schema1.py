"""Reading BenchBench JSON, schema 1.0: the format of uploads."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from django.conf import settings

from apps.datasets import records
from benchbench.decimals import list_some
from benchbench.files.ratings import parse_grade
from benchbench.ir.demand import is_weight
from benchbench.reading.objects import Checked, Filled, Listed, StrictRecord, fault, read_as, refuse
from benchbench.reading.strict_json import decode, kind, parse, read_chunks

SCHEMA_VERSION = "1.0"
GRADES = range(4)
DEFAULT_GRADE = 2
# Keys of a query's metadata that become the query's own fields.
STRINGS = ("category", "difficulty", "query_type", "split", "expected_answer", "notes")
OWN_FIELDS = (*STRINGS, "slices", "filters", "evidence", "weight")
# Keys of a dataset's metadata that become its own fields, by type.
ABOUT: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "description": str,
    "version": (str, int, float),
    "slice_definitions": dict,
}


def _check_version(version: str) -> str:
    if version != SCHEMA_VERSION:
        raise fault(f'is {version[:40]!a}: this reader knows "{SCHEMA_VERSION}"')
    return version


def _check_key(key: str) -> str:
    if len(key) > records.LENGTHS["key"]:
        raise fault(f"has more than {records.LENGTHS['key']} characters")
    return key


def _parse_doc_ref(value: Any) -> dict[str, str]:
    doc_ref = records.normalise_doc_ref(value)
    problem, key = records.find_doc_ref_fault(doc_ref)
    if problem:
        raise fault(problem, key if isinstance(value, dict) else "")
    return dict(doc_ref)


def _grade(value: object) -> int:
    grade = parse_grade(value)
    if grade is not None and grade in GRADES:
        return grade
    raise fault(f"must be an integer from 0 to 3, not {json.dumps(value)[:40]}")


Metadata = Annotated[dict[str, Any], Checked(lambda value: {} if value is None else value, before=True)]


@dataclass(frozen=True, slots=True)
class _Judgment(StrictRecord):
    NULL_IS_A_VALUE = True

    doc_ref: Annotated[dict[str, str], Checked(_parse_doc_ref, before=True)]
    relevance_grade: Annotated[int, Checked(_grade, before=True)] = DEFAULT_GRADE

    @classmethod
    def parse_object(cls, value: object, allowed_keys: Mapping[str, object]) -> Any:
        return super(_Judgment, cls).parse_object({"doc_ref": value} if isinstance(value, str) else value, allowed_keys)


@dataclass(frozen=True, slots=True)
class _Query(StrictRecord):
    ALIASES = {"query_key": "query_id", "query_text": "query", "relevant_docs": "relevant_doc_refs"}
    NULL_IS_A_VALUE = True

    query_key: Annotated[Filled, Checked(_check_key)]
    query_text: Filled
    metadata: Metadata = field(default_factory=dict)
    relevant_docs: Listed[_Judgment] = ()


@dataclass(frozen=True, slots=True)
class _File(StrictRecord):
    NULL_IS_A_VALUE = True

    schema_version: Annotated[str, Checked(_check_version)] = SCHEMA_VERSION
    metadata: Metadata = field(default_factory=dict)
    queries: list[Any] = field(kw_only=True)


class DatasetTooLargeError(records.DatasetError):
    """The file exceeds the size limit of uploads."""

    code = "too_large"
    status = 413


def read_schema1(path: Path) -> records.DatasetRecord:
    """Return the dataset of a JSON file, `.gz` unpacked; see `parse_schema1`. The default name is that of the file."""
    content = bytearray()
    for chunk in read_chunks(path):
        content += chunk
        if len(content) > settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES:
            break
    record = parse_schema1(bytes(content), location=path.name)
    return replace(record, name=record.name or path.name.removesuffix(".gz").removesuffix(".json"))


def parse_schema1(content: bytes, *, location: str = "The file") -> records.DatasetRecord:
    """Return the dataset in the bytes of a JSON file of schema 1.0, within the limits of the settings.

        {schema_version = "1.0", metadata {name, description, version, slice_definitions, …},
         queries: [{query_key (or query_id), query_text (or query), metadata {},
                    relevant_docs (or relevant_doc_refs): [{doc_ref, relevance_grade = 2}]}]}

    A doc_ref is an object with any of DOC_REF_KEYS, or a string that is the uri; an item of relevant_docs may be that
    string itself; null keys count as absent. A grade is an integer 0..3, or such an integer as a string. Equal repeated
    judgments count once and are counted as duplicates. Metadata is free, or null. A key of ABOUT or OWN_FIELDS with a
    value unsuitable for our field stays plain metadata, with a warning. Anything else raises a `BenchbenchError` with
    status 400 (413 for too many bytes) that names query and key; `location` begins messages about the whole file.
    """
    if len(content) > (limit := settings.BENCHMARK_DATASET_MAX_UPLOAD_BYTES):
        raise DatasetTooLargeError(f"{location} has more than {limit:,} bytes, the most that is allowed.")
    value = parse(decode(content, location=location), location=location)
    if isinstance(value, list):
        refuse("", 'is a list: put it into an object, {"queries": […]}')
    file = read_as(_File, value)
    if not file.queries:
        refuse("queries", "is empty: a dataset needs at least one query")
    if len(file.queries) > (limit := settings.BENCHMARK_DATASET_MAX_QUERIES):
        refuse("queries", f"has {len(file.queries):,} queries: at most {limit:,} are allowed")
    read = [_query(item, f"queries[{index}]") for index, item in enumerate(file.queries)]
    _refuse_repeated_keys([query for query, _ in read])
    return _build_dataset(dict(file.metadata), [query for query, _ in read], sum(duplicates for _, duplicates in read))


def _build_dataset(
    metadata: dict[str, Any], queries: list[records.QueryRecord], duplicates: int
) -> records.DatasetRecord:
    candidates = {key: metadata[key] for key in ABOUT if not isinstance(metadata.get(key), bool | None)}
    about = {key: metadata.pop(key) for key, value in candidates.items() if isinstance(value, ABOUT[key])}
    return records.DatasetRecord(
        name=about.get("name", ""),
        description=about.get("description", ""),
        label=str(about.get("version", "")).strip(),
        schema_version=SCHEMA_VERSION,
        source_format="benchbench-json",
        slice_definitions=about.get("slice_definitions", {}),
        metadata=metadata,
        queries=queries,
        duplicates=duplicates,
        warnings=[
            *_yield_plain_warnings(metadata, queries),
            *_yield_filter_warnings(queries),
            *_yield_weight_warnings(queries),
        ],
    )


def is_own(name: str, value: Any) -> bool:
    """Return whether a key of a query's metadata, one of OWN_FIELDS, has a valid value for the query's own field."""
    if name in STRINGS:
        return isinstance(value, str) and len(value) <= records.LENGTHS.get(name, len(value))
    if name == "weight":
        return is_weight(value)
    if name == "slices" and isinstance(value, list):
        return all(isinstance(slice, str) and slice.strip() and len(slice) <= records.SLICE_LENGTH for slice in value)
    return isinstance(value, dict if name == "filters" else list)


def _yield_plain_warnings(about: Mapping[str, object], queries: list[records.QueryRecord]) -> Iterator[str]:
    """Yield warnings about metadata keys that have the name of our field but an unsuitable value."""
    for key in ABOUT:
        if about.get(key) is not None:
            yield f"metadata.{key} is {kind(about[key])}: it stays plain metadata, and is not the dataset's {key}."
    for name in OWN_FIELDS:
        if keys := [query.key for query in queries if query.metadata.get(name) is not None]:
            yield (
                f"metadata.{name} is not what the {name} of a query {'are' if name.endswith('s') else 'is'}, in "
                f"{list_some(keys)}: it stays plain metadata, and is not used."
            )


def _yield_filter_warnings(queries: list[records.QueryRecord]) -> Iterator[str]:
    if filtered := [query for query in queries if query.filters]:
        filter_names = sorted({name for query in filtered for name in query.filters})
        yield (
            f"metadata.filters restricts the search: for {list_some([query.key for query in filtered])} only documents "
            f"are searched whose metadata has the {list_some(filter_names)} that the query states."
        )


def _yield_weight_warnings(queries: list[records.QueryRecord]) -> Iterator[str]:
    """Yield the warning that the queries' weights change the means."""
    if len({query.weight for query in queries}) > 1:
        weighted = [query.key for query in queries if query.weight != 1]
        yield (
            f"metadata.weight is the demand that a query stands for: {list_some(weighted)} state one, and a benchmark "
            "weights its means by it unless it is created with the weighting equal."
        )


def _query(item: object, path: str) -> tuple[records.QueryRecord, int]:
    """Return a query and the number of its repeated judgments."""
    query = read_as(_Query, item, prefix=f"{path}.", suffix=_name_query(item))
    docs, suffix = query.relevant_docs, _describe_query(query.query_key)
    if len(docs) > (limit := settings.BENCHMARK_DATASET_MAX_JUDGMENTS_PER_QUERY):
        problem = f"has {len(docs):,} judgments: at most {limit:,} a query are allowed"
        refuse(f"{path}.relevant_docs", problem, suffix=suffix)
    metadata = dict(query.metadata)
    own_fields = {name: metadata.pop(name) for name in OWN_FIELDS if name in metadata and is_own(name, metadata[name])}
    own_fields["weight"] = float(own_fields.get("weight", 1))
    own_fields["slices"] = list(dict.fromkeys(own_fields.get("slices", [])))
    judgments: dict[str, records.JudgmentRecord] = {}
    for index, doc in enumerate(docs):
        judgment = records.JudgmentRecord(doc_ref=dict(doc.doc_ref), grade=doc.relevance_grade)
        before = judgments.setdefault(judgment.canonical_ref, judgment)
        if before.grade != judgment.grade:
            problem = f"is {judgment.grade}, but the same document was graded {before.grade} before"
            refuse(f"{path}.relevant_docs[{index}].relevance_grade", problem, suffix=suffix)
    record = records.QueryRecord(
        key=query.query_key, text=query.query_text, judgments=list(judgments.values()), metadata=metadata, **own_fields
    )
    return record, len(docs) - len(judgments)


def _name_query(item: Any) -> str:
    """Return the name of a query in error messages, if its key is valid."""
    key = item.get("query_key", item.get("query_id")) if isinstance(item, dict) else None
    return _describe_query(key) if isinstance(key, str) and key.strip() and item.get("query_id", key) == key else ""


def _describe_query(key: str) -> str:
    return f" (query {key[:60]!a})"


def _refuse_repeated_keys(queries: list[records.QueryRecord]) -> None:
    first: dict[str, int] = {}
    for index, query in enumerate(queries):
        earlier = first.setdefault(query.key, index)
        if earlier != index:
            raise records.DatasetError(
                f"queries[{index}].query_key is {query.key[:60]!a}, as in queries[{earlier}]: a key names one query.",
                field=f"queries[{index}].query_key",
            )
