"""Finding the mapping that a command names."""

from django.contrib.auth.models import User

from apps.mappings.models import Mapping
from benchbench.finding import find_named


def find_mapping(named: str, *, owner: User | None = None) -> Mapping:
    """Return the mapping whose name or id is `named`, as `find_named` does."""
    return find_named(Mapping, named, made_by="import_beir", owner=owner)
