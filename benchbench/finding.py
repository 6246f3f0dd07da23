"""Objects that a command names."""

from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model

from benchbench.access import usable
from benchbench.errors import BenchbenchError

SHOWN = 10
M = TypeVar("M", bound=Model)


def find_named(model: type[M], named: str, *, made_by: str, owner: User | None = None) -> M:
    """Return the row of `model` whose name or id is `named`; for what is to be an `owner`'s, one that the owner sees.

    Raise a sentence where there is none, or more than one; where the table is empty, it names the command `made_by`.
    The field of the error is what the rows are called.
    """
    objects: Any = model._default_manager if owner is None else usable(model._default_manager.all(), owner)
    noun = model._meta.verbose_name
    found = list(objects.filter(name=named)[:2]) or _by_id(objects, named)
    if len(found) == 1:
        return found[0]
    if found:
        several = model._meta.verbose_name_plural
        raise BenchbenchError(f"Several {several} are called {named!r}: give the {noun}'s id.", field=str(noun))
    names = list(objects.values_list("name", flat=True)[: SHOWN + 1])
    there = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise BenchbenchError(
        f"No {noun} {f'that {owner} sees ' if owner else ''}is called {named!r}; there is "
        f"{there or f'none yet: `manage.py {made_by}` makes one'}.",
        field=str(noun),
    )


def _by_id(objects: Any, named: str) -> list[Any]:
    try:
        return list(objects.filter(pk=UUID(named)))
    except ValueError:
        return []
