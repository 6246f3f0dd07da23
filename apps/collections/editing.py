"""Changing the fields of a collection, and deleting it."""

from django.db import transaction

from apps.collections.importing import refuse_taken
from apps.collections.languages import set_language
from apps.collections.models import Collection, Document, Section
from apps.collections.states import delete_history
from benchbench.database.failures import read_again
from benchbench.deleting import delete_rows, delete_unused, require_unused
from benchbench.names import check_name


@transaction.atomic
def edit_collection(
    collection: Collection, *, name: str | None = None, description: str | None = None, language: str | None = None
) -> None:
    """Change the given fields. Raises ConflictError if the owner has another collection with that name.

    Raises the errors of `set_language`.
    """
    if language is not None:
        set_language(collection, language)
    if name is not None:
        collection.name = check_name(name, "collection")
    if description is not None:
        collection.description = description
    with refuse_taken(collection.name):
        read_again(Collection.objects.select_for_update(no_key=True), collection.pk)
        collection.save(update_fields=["name", "description", "updated_at"])


@transaction.atomic
def delete_collection(collection: Collection) -> None:
    """Delete a collection with its documents. Raises ConflictError if a mapping or an index uses it.

    Rows that refer to a document belong to a mapping, an index or the collection itself, so checking these suffices.
    Waits for a running import.
    """
    read_again(Collection.objects.select_for_update(), collection.pk)
    require_unused(collection)
    delete_history(collection)
    delete_rows(Section.objects.filter(document__collection=collection))
    delete_rows(Document.objects.filter(collection=collection))
    delete_unused(collection)
