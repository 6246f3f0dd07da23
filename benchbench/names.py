"""Names that people give to things."""

from collections.abc import Iterable

from benchbench.errors import BenchbenchError

MAX_LENGTH = 200


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
