"""Changing what a collection is called, and deleting it."""

from django.db import IntegrityError, transaction

from apps.collections.models import Collection, Document, Section
from benchbench.database.rereading import read_again
from benchbench.deleting import delete_rows, delete_unused
from benchbench.errors import ConflictError
from benchbench.names import checked_name


def edit_collection(collection: Collection, *, name: str | None = None, description: str | None = None) -> None:
    """Change what is given; raise `ConflictError` where the owner has another collection of that name."""
    if name is not None:
        collection.name = checked_name(name, "collection")
    if description is not None:
        collection.description = description
    try:
        with transaction.atomic():
            read_again(Collection.objects.select_for_update(no_key=True), collection.pk)
            collection.save(update_fields=["name", "description", "updated_at"])
    except IntegrityError:
        raise ConflictError(
            f'There is already a collection "{collection.name}": choose another name.', field="name"
        ) from None


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
