"""Names that users give to things."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model, QuerySet

from benchbench.access import usable
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.models import OwnedModel
from benchbench.reading.ids import parse_uuid
from benchbench.texts.words import fold_spelling

MAX_LENGTH = 200
Result = TypeVar("Result")


def check_name(
    name: str, noun: str, *, error: type[BenchbenchError] = BenchbenchError, max_length: int = MAX_LENGTH
) -> str:
    """Return `name` without surrounding space. Raises an `error` about the `noun` for an invalid name."""
    name = name.strip()
    if not name or not name.isprintable():
        raise error(f"The {noun} needs a name of printable characters.", field="name")
    if len(name) > max_length:
        raise error(f"The name of the {noun} must have at most {max_length} characters, not {len(name)}.", field="name")
    return name


def find_free_name(name: str, taken: Iterable[str]) -> str:
    """Return `name`; if it is taken, with the first free number from 2: "library (2)".

    Names that differ only in case or Unicode form count as taken. A name that is too long is cut before the number.
    """
    existing = set(map(fold_spelling, taken))
    endings = ("", *(f" ({number})" for number in range(2, len(existing) + 2)))
    names = (name[: MAX_LENGTH - len(ending)].rstrip() + ending for ending in endings)
    return next(free for free in names if fold_spelling(free) not in existing)


def use_free_name(name: str, rows: Sequence[QuerySet[Model]], make: Callable[[str], Result]) -> Result:
    """Return the result of `make` for a name that none of `rows` has. This is the only way to take such a name.

    If another transaction takes the name at the same moment, all is undone and `make` is called with the next free
    name. So `make` must load all rows that it depends on itself. Raises the other errors of `make`.
    """

    def find() -> str:
        return find_free_name(name.strip(), chain.from_iterable(taken.values_list("name", flat=True) for taken in rows))

    while True:
        free = find()
        try:
            with transaction.atomic():
                return make(free)
        except (IntegrityError, ConflictError):
            if find() == free:
                raise


MAX_LISTED = 10
M = TypeVar("M", bound=Model)
Owned = TypeVar("Owned", bound=OwnedModel)


def find_named(model: type[Owned], name_or_id: str, *, owner: User | None = None) -> Owned:
    """Return the row of `model` whose name or id is `name_or_id`; with an `owner`, one that the owner sees.

    Raises BenchbenchError for no such row or several. If the table is empty, the message names the command that makes
    a row. The error's field is the model's name.
    """
    objects: Any = model._default_manager if owner is None else usable(model._default_manager.all(), owner)
    noun = model._meta.verbose_name
    matching = find_rows(objects, name_or_id)
    if len(matching) == 1:
        return matching[0]
    if matching:
        several = model._meta.verbose_name_plural
        raise BenchbenchError(f"Several {several} are named {name_or_id!r}: give the {noun}'s id.", field=str(noun))
    names = list(objects.values_list("name", flat=True)[: MAX_LISTED + 1])
    listing = ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")
    raise BenchbenchError(
        f"The {noun} {name_or_id!r} was not found{f' for {owner}' if owner else ''}; "
        f"{f'choose one of {listing}' if listing else f'create one with `manage.py {model.made_by}`'}.",
        field=str(noun),
    )


def find_rows(rows: QuerySet[M], name_or_id: str) -> list[M]:
    """Return at most two rows whose name is `name_or_id`; without any, the row with this id."""
    return list(rows.filter(name=name_or_id)[:2]) or find_by_id(rows, name_or_id)


def find_by_id(rows: QuerySet[M], text: str) -> list[M]:
    """Return the row whose id is `text`; none if that is not an id or the row does not exist."""
    try:
        return list(rows.filter(pk=parse_uuid(text)))
    except ValueError:
        return []
