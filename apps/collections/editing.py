"""Giving a collection another name or description."""

from django.db import IntegrityError, transaction

from apps.collections.models import Collection
from benchbench.database.rereading import read_again
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
