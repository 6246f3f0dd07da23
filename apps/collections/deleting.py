"""Deleting a collection."""

from apps.collections.models import Collection
from benchbench.deleting import delete_unused


def delete_collection(collection: Collection) -> None:
    """Delete a collection with its documents; raise `ConflictError` where a mapping or an index uses it."""
    delete_unused(collection)
