"""Collections found by content, so that no documents are imported twice."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from django.db import transaction

from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection, Section
from apps.collections.records import DocumentRecord
from benchbench.names import under_free_name
from benchbench.reading.strict_json import canonical


@transaction.atomic
def collection_with(records: Iterable[DocumentRecord], *, name: str, owner: Any = None) -> tuple[Collection, bool]:
    """Return the owner's collection that holds these documents and sections and no others, and whether it was there.

    A new one is called `name`, with a number where that is taken: no collection that is there is changed. Raises what
    `import_documents` does.
    """
    before = transaction.savepoint()
    mine = Collection.objects.filter(owner=owner)
    made = under_free_name(name, [mine], lambda free: create_collection(free, owner=owner))
    import_documents(made, records)
    equal = mine.filter(fingerprint=made.fingerprint, kind=made.kind).exclude(pk=made.pk).order_by("created_at")
    sections = _sections_hash(made)
    for collection in equal:
        if _sections_hash(collection) == sections:
            transaction.savepoint_rollback(before)
            return collection, True
    transaction.savepoint_commit(before)
    return made, False


def _sections_hash(collection: Collection) -> str:
    """Return the SHA-256 over the sections of the live documents, which the fingerprint leaves out."""
    rows = Section.objects.filter(document__collection=collection, document__removed_at__isnull=True)
    digest = sha256()
    fields = ("document__external_id", "section_id", "heading", "level", "start", "end")
    for row in rows.order_by("document__external_id", "ordinal").values_list(*fields).iterator(chunk_size=10_000):
        digest.update(canonical(row).encode() + b"\n")
    return digest.hexdigest()
