"""Finding the collection that a command names."""

from apps.collections.models import Collection
from benchbench.finding import find_named


def find_collection(named: str) -> Collection:
    """Return the collection whose name or id is `named`; raise a sentence where there is none, or more than one."""
    return find_named(Collection, named, made_by="import_collection")
