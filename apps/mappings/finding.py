"""Finding the mapping that a command names."""

from uuid import UUID

from apps.mappings.models import Mapping
from benchbench.errors import BenchbenchError

SHOWN = 10


def find_mapping(named: str) -> Mapping:
    """Return the mapping whose name or id is `named`; raise a sentence where there is none, or more than one."""
    found = list(Mapping.objects.filter(name=named)[:2]) or _by_id(named)
    if len(found) == 1:
        return found[0]
    if found:
        raise BenchbenchError(f"Several mappings are called {named!r}, of different owners: give the mapping's id.")
    names = list(Mapping.objects.values_list("name", flat=True)[: SHOWN + 1])
    there = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise BenchbenchError(
        f"No mapping is called {named!r}; there is {there or 'none yet: `manage.py import_beir` makes one'}."
    )


def _by_id(named: str) -> list[Mapping]:
    try:
        return list(Mapping.objects.filter(pk=UUID(named)))
    except ValueError:
        return []
