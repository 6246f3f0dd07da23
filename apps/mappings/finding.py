"""Finding the mapping that a command names."""

from apps.mappings.models import Mapping
from benchbench.finding import find_named


def find_mapping(named: str) -> Mapping:
    """Return the mapping whose name or id is `named`; raise a sentence where there is none, or more than one."""
    return find_named(Mapping, named, made_by="import_beir")
