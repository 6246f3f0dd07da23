"""Deleting a collection."""

from django.db import transaction

from apps.collections.models import Collection, Document, Section
from benchbench.database.rereading import read_again
from benchbench.deleting import delete_rows, delete_unused


@transaction.atomic
def delete_collection(collection: Collection) -> None:
    """Delete a collection with its documents; raise `ConflictError` where a mapping or an index uses it.

    What points at a document belongs to a mapping, an index or the collection itself, so those decide for all. An
    import that is under way is waited for.
    """
    read_again(Collection.objects.select_for_update(), collection.pk)
    delete_rows(Section.objects.filter(document__collection=collection))
    delete_rows(Document.objects.filter(collection=collection))
    delete_unused(collection)
