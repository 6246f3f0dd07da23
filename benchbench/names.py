"""Names that people give to things."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from benchbench.errors import BenchbenchError, ConflictError

MAX_LENGTH = 200
Made = TypeVar("Made")


def checked_name(name: str, noun: str) -> str:
    """Return `name` without surrounding space; raise a sentence about the `noun` where it cannot be a name."""
    name = name.strip()
    if not name or not name.isprintable():
        raise BenchbenchError(f"The {noun} needs a name of printable characters.", field="name")
    if len(name) > MAX_LENGTH:
        raise BenchbenchError(
            f"The name of the {noun} has {len(name)} characters: at most {MAX_LENGTH} fit.", field="name"
        )
    return name


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return `name`, with the first number from 2 that makes it another where it is taken: "library (2)".

    One that is too long is cut, before the number.
    """
    there = set(taken)
    endings = ("", *(f" ({number})" for number in range(2, len(there) + 2)))
    names = (name[: MAX_LENGTH - len(ending)].rstrip() + ending for ending in endings)
    return next(free for free in names if free not in there)


def under_free_name(name: str, rows: Sequence[QuerySet[Any]], make: Callable[[str], Made]) -> Made:
    """Return what `make` makes under the free name that none of `rows` has: the one way to take such a name.

    Where another takes it in the same moment all of it is undone and made again, under the next free name; so `make`
    looks at whatever it rests on by itself. Raises what `make` raises for any other reason.
    """
    while True:
        free = free_name(name.strip(), chain.from_iterable(taken.values_list("name", flat=True) for taken in rows))
        try:
            with transaction.atomic():
                return make(free)
        except (IntegrityError, ConflictError):
            if not any(taken.filter(name=free).exists() for taken in rows):
                raise
