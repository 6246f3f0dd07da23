"""What judgments alone say of documents, for rankings of documents that are nowhere."""

import json
from collections.abc import Iterable
from hashlib import sha256

from django.db import transaction

from apps.collections.models import Collection
from apps.collections.stubs import LONGEST_ID, add_known
from apps.mappings.references import InvalidReferenceError, read_reference


@transaction.atomic
def add_judged(stub: Collection, doc_refs: Iterable[object]) -> None:
    """Give `stub` the document that each reference means: the value by which it resolves is the document's id.

    So `{"uri": "file:///a.md"}` is the document `file:///a.md`, with that uri. A reference that is nonsense, or whose
    value is no id (over 500 characters), has none, and resolves to none. The fingerprint is of these documents alone:
    what runs bring besides changes nothing of what judgments mean.
    """
    known: dict[str, dict[str, str]] = {}
    for doc_ref in doc_refs:
        try:
            (field, value), *_ = read_reference(doc_ref).lookups
        except InvalidReferenceError:
            continue
        if len(value) <= LONGEST_ID:
            document = known.setdefault(value, {})
            if field != "external_id":
                document[field] = value
    add_known(stub, known)
    stub.fingerprint = sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    stub.save(update_fields=["fingerprint", "updated_at"])
