"""Stubs of documents: what judgments alone say of them, where rankings come from elsewhere."""

import json
from collections.abc import Iterable
from hashlib import sha256

from django.db import transaction

from apps.collections.models import Collection
from apps.collections.stubs import LONGEST_ID, add_known
from apps.datasets.models import DatasetVersion
from apps.mappings.references.rules import InvalidReferenceError, read_reference

CHUNK = 5000  # judgments read at a time


def judged_ids(version: DatasetVersion) -> set[str]:
    """Return the ids under which a run can name the documents that the judgments of a version mean."""
    doc_refs = version.judgments.order_by().values_list("doc_ref", flat=True).iterator(chunk_size=CHUNK)
    return {value for _, value in filter(None, map(_decisive, doc_refs))}


@transaction.atomic
def add_judged(stub: Collection, doc_refs: Iterable[object]) -> None:
    """Give `stub` the document that each reference means: the value by which it resolves is the document's id.

    So `{"uri": "file:///a.md"}` is the document `file:///a.md`, with that uri. A reference that is nonsense, or whose
    value is no id (over 500 characters), has none, and resolves to none. The fingerprint is of these documents alone:
    what runs bring besides changes nothing of what judgments mean.
    """
    known: dict[str, dict[str, str]] = {}
    for doc_ref in doc_refs:
        if decisive := _decisive(doc_ref):
            field, value = decisive
            document = known.setdefault(value, {})
            if field != "external_id":
                document[field] = value
    add_known(stub, known)
    stub.fingerprint = sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    stub.save(update_fields=["fingerprint", "updated_at"])


def _decisive(doc_ref: object) -> tuple[str, str] | None:
    """Return the field and the value by which a reference resolves; None where that can be no id."""
    try:
        field, value = read_reference(doc_ref).lookups[0]
    except InvalidReferenceError:
        return None
    return (field, value) if len(value) <= LONGEST_ID else None
