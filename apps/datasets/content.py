"""The content of a dataset version as one hash, the same from a file as from the tables."""

from collections.abc import Iterable
from hashlib import sha256
from itertools import groupby
from typing import Any

from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.datasets.records import JUDGMENT_FIELDS, QUERY_FIELDS, JudgmentRecord, QueryRecord
from benchbench.reading.strict_json import canonical


def ref_hash(doc_ref: dict[str, Any]) -> str:
    """Return the SHA-256 of a reference's canonical JSON: sorted keys, no spaces."""
    return sha256(canonical(doc_ref).encode()).hexdigest()


def query_content(query: QueryRecord | Query) -> str:
    """Return what counts of a query, without its judgments, as canonical JSON."""
    return canonical([getattr(query, name) for name in QUERY_FIELDS])


def judgment_content(judgment: JudgmentRecord | Judgment) -> str:
    return canonical([getattr(judgment, name) for name in JUDGMENT_FIELDS])


def content_hash(queries: Iterable[QueryRecord]) -> str:
    """Return the SHA-256 over queries in key order, each followed by its judgments in the order of their references.

    What a dataset says about itself (name, description, metadata) is left out: it describes, and decides no number.
    """
    return _hash((query_content(query), query.judgments) for query in sorted(queries, key=lambda query: query.key))


def stored_hash(version: DatasetVersion) -> str:
    """Return the same for what the tables hold of a version."""
    judgments = version.judgments.order_by("query__key", "id").iterator(chunk_size=10_000)
    judged = {query_id: list(group) for query_id, group in groupby(judgments, key=lambda judgment: judgment.query_id)}
    queries = version.queries.order_by("key")
    return _hash((query_content(query), judged.get(query.pk, ())) for query in queries)


def _hash(parts: Iterable[tuple[str, Iterable[JudgmentRecord | Judgment]]]) -> str:
    digest = sha256()
    for query, judgments in parts:
        digest.update(query.encode() + b"\n")
        for line in sorted(judgment_content(judgment) for judgment in judgments):
            digest.update(b"\t" + line.encode() + b"\n")
    return digest.hexdigest()
