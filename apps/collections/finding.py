"""Finding the collection that a command names."""

from django.contrib.auth.models import User

from apps.collections.models import Collection
from benchbench.finding import find_named


def find_collection(named: str, *, owner: User | None = None) -> Collection:
    """Return the collection whose name or id is `named`, as `find_named` does."""
    return find_named(Collection, named, made_by="import_collection", owner=owner)
