"""Module queries (SPEC-001): questions, each with the modules that a search should find, and what the file counts."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbench.decimals import counted
from benchbench.files.json_writing import array, text
from benchbench.reading.fields import Fields, InvalidKeyError, without_nulls
from benchbench.reading.strict_json import read_value

DIFFICULTIES = ("easy", "medium", "hard")
MODULES = range(1, 6)
QUERY_KEYS = ("id", "query", "version", "expected_modules", "category", "difficulty", "notes")
PARTS = {"categor": "category", "difficult": "difficulty", "version": "version"}
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,199}")  # an id as text, which names it again: 007 does not
TOTALS = ("total_queries", "query_count", "total")


@dataclass(frozen=True, slots=True)
class ModuleQuery:
    """A question about one version of the software, or any of several; every expected module is relevant alike."""

    id: int
    query: str
    version: str | tuple[str, ...]
    expected_modules: tuple[str, ...]
    category: str
    difficulty: str
    notes: str = ""


@dataclass(frozen=True, slots=True)
class ModuleQueries:
    """The queries in file order; `warnings` are sentences about counts in the metadata that the queries contradict."""

    queries: tuple[ModuleQuery, ...]
    metadata: dict[str, Any]
    warnings: tuple[str, ...] = ()


def read_module_queries(path: Path) -> ModuleQueries:
    """Return what a file states: `{benchmark_queries (or queries): […], metadata: {}}`.

    Raises a sentence that names the key for whatever is not as docs/formats.md says, a repeated id among it.
    """
    fields = Fields(read_value(path), ("benchmark_queries", "queries", "metadata"), prefix=f"{path.name}, ")
    queries = tuple(
        _query(item, f"benchmark_queries[{index}].")
        for index, item in enumerate(fields.items("benchmark_queries", alias="queries"))
    )
    if not queries:
        raise fields.error("benchmark_queries", "is empty: a dataset needs at least one query")
    repeated = [id for id, count in Counter(query.id for query in queries).items() if count > 1]
    if repeated:
        raise InvalidKeyError(f"{path.name} has the id {repeated[0]} more than once: it names one query.", field="id")
    metadata = fields.mapping("metadata")
    return ModuleQueries(queries, metadata, tuple(_contradictions(metadata, queries)))


def write_module_queries(stated: ModuleQueries) -> Iterator[str]:
    """Yield the file that states these queries, valid ones, and metadata."""
    yield '{"benchmark_queries": '
    yield from array(
        {name: value for name in QUERY_KEYS if (value := getattr(query, name)) != "" or name != "notes"}
        for query in stated.queries
    )
    yield f',\n"metadata": {text(stated.metadata)}}}\n'


def _query(item: Any, prefix: str) -> ModuleQuery:
    fields = Fields(without_nulls(item), QUERY_KEYS, prefix=prefix)
    id, difficulty = fields.value("id"), fields.filled("difficulty")
    if type(id) is not int:
        raise fields.error("id", "must be an integer")
    if difficulty not in DIFFICULTIES:
        raise fields.error("difficulty", f"is {difficulty[:40]!a}: it may be {', '.join(DIFFICULTIES)}")
    stated = fields.items("expected_modules")
    modules = tuple(fields.strings("expected_modules"))
    if len(modules) not in MODULES or len(modules) < len(stated):
        raise fields.error("expected_modules", "must be a list of one to five modules, each of them once")
    return ModuleQuery(
        id=id,
        query=fields.filled("query"),
        version=_version(fields),
        expected_modules=modules,
        category=fields.filled("category"),
        difficulty=difficulty,
        notes=fields.string("notes", default=""),
    )


def _version(fields: Fields) -> str | tuple[str, ...]:
    """Return the version that is stated, or the versions of which one must match."""
    stated = fields.value("version")
    if not isinstance(stated, list):
        return fields.filled("version")
    versions = tuple(fields.strings("version"))
    if not versions or len(versions) < len(stated):
        raise fields.error("version", "must be a version, or a list of versions, each of them once")
    return versions


def versions_of(stated: str | Sequence[str]) -> Sequence[str]:
    """Return the versions that a query may be about."""
    return [stated] if isinstance(stated, str) else stated


def _contradictions(metadata: dict[str, Any], queries: Sequence[ModuleQuery]) -> Iterator[str]:
    """Compare a total, and objects of counts whose key speaks of categories, difficulties or versions."""
    for key in TOTALS:
        stated = metadata.get(key)
        if type(stated) is int and stated != len(queries):
            yield f"metadata.{key} says {stated}, and there {_are(len(queries))}."
    for key, counts in metadata.items():
        name = next((name for part, name in PARTS.items() if part in key.lower()), "")
        if name and isinstance(counts, dict):
            counted = Counter(label for query in queries for label in versions_of(getattr(query, name)))
            yield from _wrong_counts(f"metadata.{key}", counts, counted)


def _wrong_counts(place: str, stated: dict[str, Any], counted: Counter[str]) -> Iterator[str]:
    numbers = {name: count for name, count in stated.items() if type(count) is int}
    if not numbers:
        return
    for name in dict.fromkeys([*numbers, *counted]):
        if numbers.get(name, 0) != counted[name]:
            said = f"says {numbers[name]}" if name in numbers else "says nothing"
            yield f"{place} {said} of {name[:60]!a}, and there {_are(counted[name])} of it."


def _are(queries: int) -> str:
    return f"{'is' if queries == 1 else 'are'} {counted(queries, 'query')}"
