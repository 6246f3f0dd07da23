"""Versions of datasets: look-up by number, counts, content hashes, facts and weights of queries."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import groupby
from typing import cast

import numpy as np
from django.core.cache import cache
from django.db.models import IntegerField, Max, Min, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import JUDGMENT_FIELDS, QUERY_FIELDS, JudgmentRecord, QueryRecord
from benchbench.errors import BenchbenchError
from benchbench.ir.demand import Weighting
from benchbench.ir.slices import QueryFacts
from benchbench.reading.strict_json import dump_canonical


def find_version(dataset: Dataset, number: int | None = None, *, edited: bool = False) -> DatasetVersion:
    """Return a version by its number, a draft too; without one the newest frozen version, else the draft.

    With `edited` the draft comes first.
    """
    versions = dataset.versions.select_related("dataset").order_by("-number")
    if number is not None:
        version = versions.filter(number=number).first()
    else:
        version = (None if edited else versions.filter(frozen_at__isnull=False).first()) or versions.first()
    if version is None:
        numbers = ", ".join(str(existing) for existing in versions.values_list("number", flat=True)) or "none"
        raise BenchbenchError(
            f'The dataset "{dataset}" has no version {number}; its versions: {numbers}.', field="version"
        )
    return version


def add_query_count(datasets: QuerySet[Dataset]) -> QuerySet[Dataset]:
    """Annotate each dataset with the `query_count` of its newest frozen version; 0 without one."""
    frozen = DatasetVersion.objects.filter(dataset=OuterRef("pk"), frozen_at__isnull=False).order_by("-number")
    count = Subquery(frozen.values("query_count")[:1], output_field=IntegerField())
    return datasets.annotate(query_count=Coalesce(count, 0))


def add_counts(version: DatasetVersion) -> DatasetVersion:
    """Return a version with its counts. A draft is counted now; its counts are stored when it is frozen."""
    if version.frozen_at is None:
        version.query_count = version.queries.count()
        version.judgment_count = version.judgments.count()
    return version


CACHE_SECONDS = 24 * 3600
FIELDS = ("id", "text", "slices", "category", "difficulty", "query_type", "split", "filters", "metadata", "weight")


def build_facts(query: Query, n_relevant: int) -> QueryFacts:
    """Return the facts of a query with so many relevant documents. Its version is what it filters by, or else states.

    Reads no other field than FIELDS, of which `weight` is for means.
    """
    version = query.filters.get("version") or query.metadata.get("version")
    return QueryFacts(
        text=query.text,
        n_relevant=n_relevant,
        slices=tuple(query.slices),
        category=query.category,
        difficulty=query.difficulty,
        query_type=query.query_type,
        split=query.split,
        version=render_version(version),
    )


def render_version(version: object) -> str:
    """Return a query's version as a label: "16.0 or 17.0" for several, blank without one."""
    return " or ".join(map(str, version)) if isinstance(version, list) else str(version or "")


def choose_weighting(version: DatasetVersion) -> Weighting:
    """Return the default weighting of a new benchmark: "demand" if the queries' weights differ."""
    ends = version.queries.aggregate(least=Min("weight"), most=Max("weight"))
    return "demand" if ends["least"] != ends["most"] else "equal"


def load_weights(weighting: str, version: DatasetVersion, query_ids: Sequence[int]) -> NDArray[np.float64] | None:
    """Return the weights of queries of a frozen version, (queries,); None, without a query, if they count alike."""
    if weighting != "demand":
        return None
    key = f"weights:2:{version.pk}:{version.content_hash}"
    queries = version.queries.order_by()
    by_id = cache.get_or_set(key, lambda: dict(queries.values_list("pk", "weight")), CACHE_SECONDS)
    return np.array([cast(dict[int, float], by_id)[query_id] for query_id in query_ids], np.float64)


def encode_query(query: QueryRecord | Query) -> str:
    """Return the hashed fields of a query, without its judgments, as canonical JSON.

    A weight of 1 is left out, so that a version without weights has the hash that it had before there were weights.
    """
    weight = [float(query.weight)] if query.weight != 1 else []
    return dump_canonical([*(getattr(query, name) for name in QUERY_FIELDS if name != "weight"), *weight])


def encode_judgment(judgment: JudgmentRecord | Judgment) -> str:
    """Return the fields of a judgment, of which the first is its reference, as canonical JSON."""
    reference = judgment.canonical_ref if isinstance(judgment, JudgmentRecord) else dump_canonical(judgment.doc_ref)
    return f"[{reference},{dump_canonical([getattr(judgment, name) for name in JUDGMENT_FIELDS[1:]])[1:]}"


def hash_content(queries: Iterable[QueryRecord]) -> str:
    """Return the SHA-256 over queries in key order, each followed by its judgments in the order of their references.

    Name, description and metadata of the dataset are left out, because they affect no result.
    """
    return _hash((encode_query(query), query.judgments) for query in sorted(queries, key=lambda query: query.key))


def hash_version(version: DatasetVersion) -> str:
    """Return the content hash of a stored version."""
    judgments = version.judgments.order_by("query__key", "id").iterator(chunk_size=10_000)
    judged = {query_id: list(group) for query_id, group in groupby(judgments, key=lambda judgment: judgment.query_id)}
    queries = version.queries.order_by("key")
    return _hash((encode_query(query), judged.get(query.pk, ())) for query in queries)


def _hash(contents: Iterable[tuple[str, Iterable[JudgmentRecord | Judgment]]]) -> str:
    digest = sha256()
    for query, judgments in contents:
        digest.update(query.encode() + b"\n")
        for line in sorted(encode_judgment(judgment) for judgment in judgments):
            digest.update(b"\t" + line.encode() + b"\n")
    return digest.hexdigest()


MOST_REFERENCES = 1000


def list_references(dataset: Dataset) -> set[str]:
    """Return texts by which a dataset's newest frozen version refers to documents, from some of its judgments."""
    version = dataset.versions.exclude(frozen_at=None).order_by("-number").first()
    doc_refs = version.judgments.values_list("doc_ref", flat=True)[:MOST_REFERENCES] if version else ()
    return {text for doc_ref in doc_refs for text in doc_ref.values() if isinstance(text, str)}
