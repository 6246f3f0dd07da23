"""The names that people give to things."""

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
