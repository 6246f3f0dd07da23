"""The default modes of a matrix: all that its indexes can search."""

from collections.abc import Mapping as MappingType
from typing import Any

from django.contrib.auth.models import User

from apps.benchmarks.defining.choosing import newest_indexes
from apps.mappings.models import Mapping
from apps.retrieval.models import Index
from benchbench.ir.planning.configuration import LEXICAL, SEARCH_MODES
from benchbench.ir.planning.matrix import MatrixError


def with_modes(mapping: Mapping, matrix: MappingType[str, Any], *, owner: User | None = None) -> dict[str, Any]:
    """Return `matrix` with search_modes: where it has none, all that every index it names can search, for `owner`.

    Whatever else may be wrong with it is left to `create_benchmark` and `preview`. Raises MatrixError where the indexes
    have no mode in common.
    """
    names = matrix.get("indexes", (None,))
    there = newest_indexes(mapping, owner)
    if "search_modes" in matrix or not isinstance(names, list | tuple):
        return dict(matrix)
    named = [there[name] for name in names if (name is None or isinstance(name, str)) and name in there]
    if not named:
        return dict(matrix)
    engines = matrix.get("lexical", LEXICAL[:1])
    modes = [mode for mode in SEARCH_MODES if all(_can(index, mode, engines) for index in named)]
    if not modes:
        said = " and ".join(sorted({index.name for index in named}))
        raise MatrixError(
            f"search_modes: the indexes {said} have no mode in common: compare them in benchmarks of their own.",
            field="search_modes",
        )
    return {**matrix, "search_modes": modes}


def _can(index: Index, mode: str, engines: Any) -> bool:
    full_text = isinstance(engines, list | tuple) and list(engines) == ["fts"]  # which every index can do
    lexical = full_text or index.lexical_index_id is not None
    return {"dense": index.has_vectors, "sparse": lexical, "hybrid": index.has_vectors and lexical}[mode]
