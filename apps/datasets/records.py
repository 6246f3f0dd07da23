"""Records of datasets: readers return them, importing takes them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.ir.demand import GREATEST_WEIGHT, LEAST_WEIGHT, is_weight
from benchbench.reading.ids import SHA256
from benchbench.reading.objects import drop_nulls
from benchbench.reading.strict_json import dump_canonical, fault, kind

# The keys of a reference to a document, in the order in which resolving tries them.
DOC_REF_KEYS = ("document_id", "uri", "content_hash", "path", "file_name")
LENGTHS = {"key": 200, "text": 100_000, "category": 100, "difficulty": 100, "query_type": 100, "split": 50}
REFERENCE_LENGTH = 2_000  # of each key of a reference, and of a section; longer than any document's name
SLICE_LENGTH = 100
LABEL_LENGTH = 50
JUDGE_LENGTH = 200
FIELDS = {"key": "query_key", "text": "query_text"}  # names in forms and the API
GRADES = range(-(2**15), 2**15)  # the range of a two-byte column; readers may enforce narrower scales


class DatasetError(BenchbenchError):
    """A dataset, or a part of it, cannot be stored; the message names the part."""

    code = "invalid_dataset"
    columns: Mapping[str, str] = {}  # those of a table with their fields, as in `DatasetRecord`


@dataclass(frozen=True, slots=True)
class JudgmentRecord:
    """A grade for a document. `doc_ref` has at least one key, preferably some of DOC_REF_KEYS."""

    doc_ref: dict[str, Any]
    grade: int
    section_refs: list[str] | None = None
    source: str = "import"
    judge: str = ""
    note: str = ""
    _canonical_ref: str = field(default="", init=False, repr=False, compare=False)

    @property
    def canonical_ref(self) -> str:
        """Return the reference as canonical JSON, which is made once: readers, checks and hashes use it."""
        if not self._canonical_ref:
            object.__setattr__(self, "_canonical_ref", dump_canonical(self.doc_ref))
        return self._canonical_ref

    @property
    def ref_hash(self) -> str:
        return hash_ref(self.canonical_ref)


def hash_ref(canonical_ref: str) -> str:
    """Return the SHA-256 of a reference's canonical JSON."""
    return sha256(canonical_ref.encode()).hexdigest()


def build_judgments(grades: Mapping[str, int], *, source: str = "import") -> list[JudgmentRecord]:
    """Return the judgments of documents by their ids."""
    return [JudgmentRecord({"document_id": document}, grade, source=source) for document, grade in grades.items()]


def name_source(path: Path) -> str:
    """Return the name of a dataset whose file states none: the file's, without its endings."""
    return re.sub(r"\.\w+$", "", path.name.removesuffix(".gz"))


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """An information need and its judgments, each document judged once. The fields are those of the table."""

    key: str
    text: str
    judgments: Sequence[JudgmentRecord] = ()
    slices: Sequence[str] = ()
    category: str = ""
    difficulty: str = ""
    query_type: str = ""
    split: str = ""
    filters: dict[str, Any] = field(default_factory=dict)
    expected_answer: str = ""
    evidence: Sequence[Any] = ()
    notes: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class DatasetRecord:
    """Queries and judgments of a source, in its order.

    `label` is the source's version, or blank. `duplicates` counts equal repetitions of judgments. `dangling` counts
    references to documents and sections that the source lacks; None if it has no documents. `warnings` are sentences
    about suspicious content. `columns` are those of a table, each with its field, "" for one that is not read.
    """

    name: str
    queries: Sequence[QueryRecord]
    description: str = ""
    label: str = ""
    schema_version: str = "1.0"
    source_format: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    slice_definitions: dict[str, object] = field(default_factory=dict)
    duplicates: int = 0
    dangling: int | None = None
    warnings: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)


JUDGMENT_FIELDS = tuple(field.name for field in fields(JudgmentRecord) if field.init)
QUERY_FIELDS = tuple(field.name for field in fields(QueryRecord) if field.name != "judgments")


def normalise_doc_ref(value: object) -> Any:
    """Return a reference in its stored form: a string becomes a uri, and null keys are dropped."""
    return {"uri": value} if isinstance(value, str) else drop_nulls(value)


def find_doc_ref_fault(doc_ref: object) -> tuple[str, str]:
    """Return why a value cannot refer to a document ("has the unknown key …"), and its invalid key, or "".

    Both are "" for a valid reference.
    """
    allowed_keys = ", ".join(DOC_REF_KEYS)
    if not isinstance(doc_ref, dict):
        return f"must be an object with any of {allowed_keys}, or a string that is the uri, not {kind(doc_ref)}", ""
    if not doc_ref:
        return f"is empty: give any of {allowed_keys}", ""
    for key, value in doc_ref.items():
        if key not in DOC_REF_KEYS:
            return f"has the unknown key {key[:40]!a}: known are {allowed_keys}", key
        if not isinstance(value, str) or not value.strip():
            actual = "blank" if isinstance(value, str) else kind(value)
            return f"must hold strings that are not blank: its {key} is {actual}", key
    hash = doc_ref.get("content_hash", "")
    if hash and not SHA256.fullmatch(hash):
        return f"has the content_hash {hash[:40]!a}, which is not 64 hexadecimal digits (SHA-256)", "content_hash"
    key = _find_too_long(doc_ref)
    return (f"has more than {REFERENCE_LENGTH:,} characters in its {key}" if key else ""), key


def check(record: DatasetRecord) -> None:
    """Raise DatasetError for content that the tables cannot hold, from any reader."""
    if not record.queries:
        raise DatasetError("The dataset has no query: it needs at least one.", field="queries")
    if len(record.label) > LABEL_LENGTH:
        raise DatasetError(f"The version label has more than {LABEL_LENGTH} characters.", field="version")
    if flaw := fault([record.description, record.label, record.metadata, record.slice_definitions]):
        raise DatasetError(f"What the dataset says about itself {flaw}.", field="metadata")
    keys = set()
    for query in record.queries:
        check_query(query)
        if query.key in keys:
            raise DatasetError(f"Two queries have the key {query.key!a}: a key names one query.", field="query_key")
        keys.add(query.key)


def check_query(query: QueryRecord) -> None:
    """Raise DatasetError for parts of a query and its judgments that the tables cannot hold."""
    label = f"The query {query.key[:100]!a}"
    if not query.key.strip() or not query.text.strip():
        blank = "query_text" if query.key.strip() else "query_key"
        raise DatasetError(f"{label} needs a key and a text that are not blank.", field=blank)
    for name, limit in LENGTHS.items():
        if len(getattr(query, name)) > limit:
            raise DatasetError(
                f"{label} has more than {limit:,} characters in its {name}.", field=FIELDS.get(name, name)
            )
    if any(len(name) > SLICE_LENGTH for name in query.slices):
        raise DatasetError(f"{label} has a slice of more than {SLICE_LENGTH} characters.", field="slices")
    if not is_weight(query.weight):
        raise DatasetError(
            f"{label} has the weight {query.weight}: give a number from {LEAST_WEIGHT:g} to {GREATEST_WEIGHT:g}.",
            field="weight",
        )
    judgments = [[getattr(judgment, name) for name in JUDGMENT_FIELDS] for judgment in query.judgments]
    if flaw := fault([[getattr(query, name) for name in QUERY_FIELDS], judgments]):
        raise DatasetError(f"{label} {flaw}.")
    for judgment in query.judgments:
        _check_judgment(judgment, label)
    if len({judgment.canonical_ref for judgment in query.judgments}) < len(query.judgments):
        raise DatasetError(f"{label} judges a document twice: keep one of the two judgments.", field="judgments")


def _check_judgment(judgment: JudgmentRecord, label: str) -> None:
    if judgment.grade not in GRADES:
        raise DatasetError(f"{label} has the grade {judgment.grade}, which is out of range.", field="grade")
    if len(judgment.judge) > JUDGE_LENGTH:
        raise DatasetError(f"{label} has a judge of more than {JUDGE_LENGTH} characters.", field="judge")
    if key := _find_too_long(judgment.doc_ref):
        raise DatasetError(f"{label} has a {key} of more than {REFERENCE_LENGTH:,} characters.", field="doc_ref")
    if any(len(section) > REFERENCE_LENGTH for section in judgment.section_refs or ()):
        raise DatasetError(f"{label} has a section of more than {REFERENCE_LENGTH:,} characters.", field="section_refs")


def _find_too_long(doc_ref: Mapping[str, object]) -> str:
    """Return the key of a reference whose value is too long, "" for none."""
    long = (key for key, value in doc_ref.items() if isinstance(value, str) and len(value) > REFERENCE_LENGTH)
    return next(long, "")
