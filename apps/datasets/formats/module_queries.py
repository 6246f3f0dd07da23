"""Reading module queries (SPEC-001): questions, each with the modules that a search should find."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from apps.datasets.records import DatasetRecord, QueryRecord, build_judgments
from benchbench.decimals import counted
from benchbench.reading import objects
from benchbench.reading.strict_json import read_value

DIFFICULTIES = ("easy", "medium", "hard")
MODULES = range(1, 6)
KEY_STEMS = {"categor": "category", "difficult": "difficulty", "version": "version"}
GRADE = 1
TOTALS = ("total_queries", "query_count", "total")


def _check_modules(value: Any) -> tuple[str, ...]:
    modules = objects.check_strings(value)
    if len(modules) not in MODULES or len(modules) < len(value):
        raise objects.fault("must be a list of one to five modules, each of them once")
    return modules


def _check_version(value: object) -> str | tuple[str, ...]:
    if not isinstance(value, list):
        return objects.check_filled(value)
    versions = objects.check_strings(value)
    if not versions or len(versions) < len(value):
        raise objects.fault("must be a version, or a list of versions, each of them once")
    return versions


@dataclass(frozen=True, slots=True)
class ModuleQuery(objects.StrictRecord):
    """A question about one or several versions of the software; all expected modules are equally relevant."""

    id: int
    query: objects.Filled
    version: Annotated[str | tuple[str, ...], objects.Checked(_check_version, before=True)]
    expected_modules: Annotated[tuple[str, ...], objects.Checked(_check_modules, before=True)]
    category: objects.Filled
    difficulty: Annotated[str, objects.Must("easy, medium or hard", DIFFICULTIES.__contains__)]
    notes: str = ""


@dataclass(frozen=True, slots=True)
class _File(objects.StrictRecord):
    ALIASES = {"benchmark_queries": "queries"}
    NULL_IS_A_VALUE = True

    benchmark_queries: list[object]
    metadata: dict[str, object] = field(default_factory=dict)


def read_module_queries(path: Path) -> DatasetRecord:
    """Return the dataset of a file `{benchmark_queries (or queries): […], metadata: {}}`, in file order.

    A module is the document that has its name as external_id. A query's `version` becomes its filter: only documents
    whose metadata has that version, or one of the given versions, are searched. Raises InvalidKeyError, with the key,
    for content that breaks docs/formats.md, such as a repeated id. Wrong counts in the metadata give warnings.
    """
    value = read_value(path)
    if isinstance(value, list):
        objects.refuse(path.name, 'is a list: put it into an object, {"benchmark_queries": […]}')
    file = objects.read_as(_File, value, prefix=f"{path.name}, ")
    queries = objects.read_list(ModuleQuery, file.benchmark_queries, prefix="benchmark_queries")
    if not queries:
        objects.refuse(f"{path.name}, benchmark_queries", "is empty: a dataset needs at least one query")
    repeated = [id for id, count in Counter(query.id for query in queries).items() if count > 1]
    if repeated:
        raise objects.InvalidKeyError(
            f"{path.name} has the id {repeated[0]} more than once: it names one query.", field="id"
        )
    name = file.metadata.get("name")
    return DatasetRecord(
        name=name if isinstance(name, str) else path.name.removesuffix(".gz").removesuffix(".json"),
        queries=[_record(query) for query in queries],
        source_format="module-queries",
        metadata=file.metadata,
        warnings=tuple(_compare_counts(file.metadata, queries)),
    )


def _record(query: ModuleQuery) -> QueryRecord:
    return QueryRecord(
        key=str(query.id),
        text=query.query,
        judgments=build_judgments(dict.fromkeys(query.expected_modules, GRADE)),
        category=query.category,
        difficulty=query.difficulty,
        filters={"version": query.version if isinstance(query.version, str) else list(query.version)},
        notes=query.notes,
    )


def _compare_counts(metadata: Mapping[str, object], queries: Sequence[ModuleQuery]) -> Iterator[str]:
    """Compare the total, and counts by category, difficulty or version, with the queries."""
    for key in TOTALS:
        count = metadata.get(key)
        if type(count) is int and count != len(queries):
            yield f"metadata.{key} says {count}, but there {_render_count(len(queries))}."
    for key, counts in metadata.items():
        name = next((name for stem, name in KEY_STEMS.items() if stem in key.lower()), "")
        if name and isinstance(counts, dict):
            values = (getattr(query, name) for query in queries)
            label_counts = Counter(
                label for value in values for label in ([value] if isinstance(value, str) else value)
            )
            yield from _check_counts(f"metadata.{key}", counts, label_counts)


def _check_counts(path: str, counts: Mapping[str, object], counted: Counter[str]) -> Iterator[str]:
    numbers = {name: count for name, count in counts.items() if type(count) is int}
    if not numbers:
        return
    for name in dict.fromkeys([*numbers, *counted]):
        if numbers.get(name, 0) != counted[name]:
            claim = f"says {numbers[name]}" if name in numbers else "says nothing"
            yield f"{path} {claim} of {name[:60]!a}, but there {_render_count(counted[name])} of it."


def _render_count(queries: int) -> str:
    return f"{'is' if queries == 1 else 'are'} {counted(queries, 'query')}"
