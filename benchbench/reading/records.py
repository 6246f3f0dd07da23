"""Records as objects: what is told of a thing, by the names of its attributes."""

from typing import Any


def attributes(thing: object, *names: str) -> dict[str, Any]:
    """Return attributes of a thing by their names."""
    return {name: getattr(thing, name) for name in names}
