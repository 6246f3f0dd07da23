"""Objects that a command names."""

from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet

from benchbench.access import usable
from benchbench.errors import BenchbenchError
from benchbench.models import OwnedModel

SHOWN = 10
M = TypeVar("M", bound=Model)
Owned = TypeVar("Owned", bound=OwnedModel)


def find_named(model: type[Owned], named: str, *, owner: User | None = None) -> Owned:
    """Return the row of `model` whose name or id is `named`; for what is to be an `owner`'s, one that the owner sees.

    Raise a sentence where there is none, or more than one; where the table is empty, the sentence names the command
    that makes one. The field of the error is what the rows are called.
    """
    objects: Any = model._default_manager if owner is None else usable(model._default_manager.all(), owner)
    noun = model._meta.verbose_name
    matching = named_rows(objects, named)
    if len(matching) == 1:
        return matching[0]
    if matching:
        several = model._meta.verbose_name_plural
        raise BenchbenchError(f"Several {several} are called {named!r}: give the {noun}'s id.", field=str(noun))
    names = list(objects.values_list("name", flat=True)[: SHOWN + 1])
    there = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise BenchbenchError(
        f"No {noun} {f'that {owner} sees ' if owner else ''}is called {named!r}; there is "
        f"{there or f'none yet: `manage.py {model.made_by}` makes one'}.",
        field=str(noun),
    )


def named_rows(rows: QuerySet[M], named: str) -> list[M]:
    """Return the rows whose name is `named`, two at most; without any, the one whose id it is."""
    return list(rows.filter(name=named)[:2]) or rows_by_id(rows, named)


def rows_by_id(rows: QuerySet[M], named: str) -> list[M]:
    """Return the row whose id is `named`, if it is one, and there is such a row."""
    try:
        return list(rows.filter(pk=UUID(named)))
    except ValueError:
        return []
