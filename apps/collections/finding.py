"""Finding the collection that a command names."""

from uuid import UUID

from apps.collections.models import Collection
from benchbench.errors import BenchbenchError

SHOWN = 10


def find_collection(named: str) -> Collection:
    """Return the collection whose name or id is `named`; raise a sentence where there is none, or more than one."""
    found = list(Collection.objects.filter(name=named)[:2]) or _by_id(named)
    if len(found) == 1:
        return found[0]
    if found:
        raise BenchbenchError(
            f"Several collections are called {named!r}, of different owners: give the collection's id."
        )
    names = list(Collection.objects.values_list("name", flat=True)[: SHOWN + 1])
    there = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise BenchbenchError(
        f"No collection is called {named!r}; there is {there or 'none yet: `manage.py import_collection` makes one'}."
    )


def _by_id(named: str) -> list[Collection]:
    try:
        return list(Collection.objects.filter(pk=UUID(named)))
    except ValueError:
        return []
