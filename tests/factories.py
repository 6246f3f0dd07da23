"""Small objects for tests, written straight into the tables."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from django.utils import timezone

from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query


def make_collection(name: str = "library", documents: Sequence[dict[str, Any]] = ()) -> Collection:
    """Return a collection with documents of the given fields; ids and hashes are made up where none are given."""
    collection = Collection.objects.create(name=name, document_count=len(documents), fingerprint=_sha256(name))
    for number, fields in enumerate(documents, start=1):
        external_id = fields.get("external_id", f"d{number}")
        made = {"external_id": external_id, "content_hash": _sha256(external_id), **fields}
        Document.objects.create(collection=collection, **made)
    return collection


def make_dataset(queries: dict[str, Sequence[tuple[Any, int]]] | None = None, name: str = "questions") -> Dataset:
    """Return a dataset with one frozen version; `queries` gives each key its judgments as (reference, grade)."""
    dataset = Dataset.objects.create(name=name)
    for key, judgments in (queries or {}).items():
        query = Query.objects.create(dataset=dataset, key=key, text=f"What is {key}?")
        for doc_ref, grade in judgments:
            add_judgment(query, doc_ref, grade)
    add_version(dataset)
    return dataset


def add_judgment(query: Query, doc_ref: Any, grade: int, *, since: int = 1) -> Judgment:
    canonical = json.dumps(doc_ref, sort_keys=True)
    return Judgment.objects.create(query=query, doc_ref=doc_ref, ref_hash=_sha256(canonical), grade=grade, since=since)


def add_version(dataset: Dataset, *, frozen: bool = True) -> DatasetVersion:
    """Add the dataset's next version."""
    number = dataset.versions.count() + 1
    return DatasetVersion.objects.create(
        dataset=dataset,
        number=number,
        content_hash=_sha256(f"{dataset.name} {number}"),
        frozen_at=timezone.now() if frozen else None,
    )


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
