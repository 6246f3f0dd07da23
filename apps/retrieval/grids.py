"""Index grids: plan which indexes exist, are new or are unavailable, and create the new ones."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain, product
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.retrieval import indexing
from apps.retrieval.availability import UnavailableError, describe_missing, list_index_requirements
from apps.retrieval.building import IndexingError, require_chunk_limit
from apps.retrieval.encoders.prompts import quote
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.naming import list_longer_names, name_index
from apps.retrieval.strategies import STRATEGIES
from apps.retrieval.strategies.base import StrategyError
from benchbench.database.failures import read_again
from benchbench.ir.encoding import DEFAULT, EncoderParameters
from benchbench.names import MAX_LENGTH, find_free_name
from benchbench.reading.calls import CallError, read_options
from benchbench.reading.kinds import convert_number
from benchbench.reading.objects import format_value

BEFORE: Mapping[str, str] = {
    Index.Status.FAILED: "failed before, will be built again",
    Index.Status.CANCELLED: "was cancelled, will be built again",
}
STRATEGY = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<options>[^()]*)\)\s*)?")
EXAMPLE = "flat(size=500, overlap=50)"
ENCODER_EXAMPLE = 'intfloat/e5-base-v2(query_prompt="query: ", document_prompt="passage: ", precision=mixed)'
ENCODER_OPTIONS = tuple(field.name for field in fields(EncoderParameters))
BEGIN = re.compile(rf"\(\s*+(?:{'|'.join(ENCODER_OPTIONS)})\s*+=")  # a folder's name may have parentheses too
WORDS: dict[str, object] = {"true": True, "false": False}
MAX_COMBINATIONS = 1000
NO_LLM: tuple[str, Mapping[str, object]] = ("", {})


@dataclass(frozen=True)
class Grid:
    """Strategies, encoders and language models with their parameters, and stores to search.

    An encoder "" means lexical search only. Indexes do not depend on the store: each serves all stores of the grid.
    """

    strategies: Sequence[tuple[str, Mapping[str, Any]]]
    encoders: Sequence[tuple[str, EncoderParameters]]
    llms: Sequence[tuple[str, Mapping[str, Any]]] = ()
    lexical: bool = True
    stores: Sequence[str] = ("",)

    def list_combinations(self) -> list[tuple[Ingredients, str]]:
        """Return the distinct combinations of an index and a store, strategies varying slowest, then stores.

        Language models vary only for strategies that use one. Raises IndexingError for too many.
        """
        axes = (self.strategies, self.stores, self.encoders, self.llms or [NO_LLM])
        if (count := math.prod(map(len, axes))) > MAX_COMBINATIONS:
            raise IndexingError(
                f"The lists have {count:,} combinations; at most {MAX_COMBINATIONS:,} are read. Shorten a list."
            )
        combined = []
        for strategy, parameters in self.strategies:
            asks = strategy in STRATEGIES and STRATEGIES[strategy].requires_llm
            llms = (self.llms if asks else ()) or [NO_LLM]
            for store, (encoder, used), (llm, llm_parameters) in product(self.stores, self.encoders, llms):
                models = encoder.strip(), llm.strip(), dict(llm_parameters)
                ingredients = Ingredients(strategy, dict(parameters), *models, self.lexical, **asdict(used))
                combined.append((ingredients, store))
        return _drop_repeats(combined)

    def list_ingredients(self) -> list[Ingredients]:
        """Return the ingredients of each distinct index."""
        return _drop_repeats([ingredients for ingredients, _ in self.list_combinations()])


def _drop_repeats(values: Sequence[object]) -> list[Any]:
    """Return the first of equal values. They hold dicts, so they have no hash."""
    distinct: dict[str, object] = {}
    for value in values:
        distinct.setdefault(json.dumps(value, sort_keys=True, default=asdict), value)
    return list(distinct.values())


@dataclass(frozen=True)
class Cell:
    """A cell of a grid: `index` is an equal existing one, if any, and `missing` names its unavailable parts."""

    name: str
    ingredients: Ingredients
    index: Index | None = None
    missing: str = ""
    store: str = ""

    @property
    def state(self) -> str:
        """Return the state: "ready", "unavailable", "begun" or "new"."""
        if self.missing:
            return "unavailable"
        if self.index is None:
            return "new"
        return "ready" if self.index.status == Index.Status.READY else "begun"

    @property
    def state_text(self) -> str:
        """Return the state in the words of pages; "" if unavailable."""
        if self.index is not None and self.state == "begun":
            return BEFORE.get(self.index.status, "exists, still to be built")
        return {"ready": "exists", "new": "will be created"}.get(self.state, "")

    def as_dict(self) -> dict[str, Any]:
        ingredients = {name: value for name, value in asdict(self.ingredients).items() if name != "lexical"}
        index = self.index.pk if self.index else None
        return {"name": self.name, "state": self.state, **ingredients, "index": index, "error": self.missing or None}


@dataclass(frozen=True)
class Build:
    """An index of a grid and the operation that builds it, None if it is ready."""

    cell: Cell
    index: Index
    operation: Operation | None


def plan_grid(collection: Collection, grid: Grid, *, owner: User | None = None) -> list[Cell]:
    """Return the distinct indexes of a grid over a collection, as visible to `owner`, without creating any.

    Raises IndexingError for an empty axis, for more indexes than BENCHMARK_MAX_VALUES_PER_AXIS, for an index above
    BENCHBENCH_MAX_CHUNKS, and for one with neither vectors nor words. Raises StrategyError, ChunkingError and LLMError
    for invalid parameters.
    """
    for one, many in (("strategy", "strategies"), ("encoder", "encoders")):
        if not getattr(grid, many):
            raise IndexingError(f"Give at least one {one}.", field=many)
    if (count := len(grid.list_ingredients())) > settings.BENCHMARK_MAX_VALUES_PER_AXIS:
        raise IndexingError(
            f"These are {count} indexes; at most {settings.BENCHMARK_MAX_VALUES_PER_AXIS} can be built at once "
            "(BENCHMARK_MAX_VALUES_PER_AXIS). Shorten a list."
        )
    cells: list[Cell] = []
    for cell in _plan_cells(collection, grid, owner):
        if cell.ingredients not in [planned.ingredients for planned in cells]:
            cells.append(cell)
    return cells


@transaction.atomic
def make_grid(collection: Collection, grid: Grid, *, owner: User | None = None, by: User | None = None) -> list[Build]:
    """Create the missing indexes of a grid and start building all that are not ready, in one transaction.

    They belong to `owner` and count against the quota of `by`. Raises UnavailableError naming all unavailable parts,
    QuotaError, and the errors of `plan_grid` and `create_index`.
    """
    locked = _lock(collection)
    cells = plan_grid(locked, grid, owner=owner)
    if missing := dict.fromkeys(cell.missing for cell in cells if cell.missing):
        raise UnavailableError(f"No index was created: {'; '.join(missing)}.")
    builds = []
    for cell in cells:
        index = indexing.get_or_create_index(locked, cell.ingredients, name=cell.name, owner=owner)
        operation = None if index.status == Index.Status.READY else indexing.find_or_start_build(index, by=by or owner)
        builds.append(Build(cell, index, operation))
    return builds


@transaction.atomic
def declare_indexes(collection: Collection, grid: Grid, *, owner: User | None = None) -> dict[str, Index]:
    """Return the indexes of a grid by distinct names: existing ones, or new ones that are not built.

    An unavailable index is stored as failed, with the reason. Raises the errors of `plan_grid` and `create_index`.
    """
    locked = _lock(collection)
    declared: dict[str, Index] = {}
    for cell in _plan_cells(locked, grid, owner):
        if cell.missing:
            reason = f"{cell.missing[0].upper()}{cell.missing[1:]}."
            index = indexing.create_failed_index(locked, cell.ingredients, name=cell.name, reason=reason, owner=owner)
        else:
            index = indexing.get_or_create_index(locked, cell.ingredients, name=cell.name, owner=owner)
        declared[find_free_name(cell.name, declared)] = index
    return declared


def _lock(collection: Collection) -> Collection:
    """Lock the collection and return it, so that two callers do not create the same index."""
    return read_again(Collection.objects.select_for_update(no_key=True), collection.pk)


def _plan_cells(collection: Collection, grid: Grid, owner: User | None) -> Iterator[Cell]:
    """Yield the plan of each index. New names are distinct from earlier ones and others in the collection."""
    used_names: list[str] = []
    for ingredients in grid.list_ingredients():
        cell = _plan_cell(collection, ingredients, owner, used_names)
        used_names.append(cell.name)
        yield cell


def _plan_cell(collection: Collection, ingredients: Ingredients, owner: User | None, used_names: Sequence[str]) -> Cell:
    if missing := describe_missing(list_index_requirements(ingredients)):
        return Cell(find_free_name(name_index(ingredients), used_names), ingredients, missing=missing)
    ingredients = indexing.complete(ingredients)
    indexing.require_parameters(ingredients.encoder, ingredients.encoder_parameters)
    indexing.require_searchable(name_index(ingredients), ingredients.strategy, ingredients.encoder, ingredients.lexical)
    index = indexing.find_index(collection, ingredients, owner=owner)
    if index is None:
        require_chunk_limit(collection, ingredients.strategy, ingredients.chunk_parameters)
    is_started = index is not None and index.status in (Index.Status.READY, Index.Status.INDEXING)
    missing = "" if is_started else describe_missing(list_index_requirements(ingredients, to_build=True))
    return Cell(index.name if index else _choose_name(collection, ingredients, used_names), ingredients, index, missing)


def _choose_name(collection: Collection, ingredients: Ingredients, used_names: Sequence[str]) -> str:
    """Return a name that the collection uses for no index with other ingredients."""
    other_indexes = Index.objects.filter(collection=collection).exclude(**asdict(ingredients), vector_source="")
    names = {*used_names, *other_indexes.values_list("name", flat=True)}
    candidates = [name[:MAX_LENGTH] for name in chain([name_index(ingredients)], list_longer_names(ingredients))]
    return next((name for name in candidates if name not in names), find_free_name(candidates[-1], names))


def read_strategy(text: str) -> tuple[str, dict[str, object]]:
    """Parse a strategy such as "flat" or "lod_embed(doc_top_k=3)" into its name and parameters.

    Raises StrategyError.
    """
    match = STRATEGY.fullmatch(text)
    if match is None:
        raise StrategyError(f"{format_value(text)} is not a strategy such as flat or {EXAMPLE}.", field="strategies")
    try:
        options = read_options(match["options"] or "", expects="an option such as size=500")
    except CallError as error:
        raise StrategyError(f"{text}: {error}", field="strategies") from None
    return match["name"], {name: _parse_value("|".join(values)) for name, values in options.items()}


def read_encoder(text: str) -> tuple[str, EncoderParameters]:
    """Parse an encoder such as ENCODER_EXAMPLE, or a name alone, into its name and parameters. Raises IndexingError."""
    text = text.strip()
    begin = BEGIN.search(text)
    if begin is None or not text.endswith(")"):
        return text, DEFAULT
    try:
        options = read_options(text[begin.start() + 1 : -1], expects='an option such as query_prompt="query: "')
        values = {name: _parse_text("|".join(values)) for name, values in options.items()}
    except ValueError as error:
        raise IndexingError(f"{text}: {error}", field="encoders") from None
    if unknown := values.keys() - {*ENCODER_OPTIONS}:
        names = ", ".join(ENCODER_OPTIONS)
        raise IndexingError(
            f"{text}: {min(unknown)} is not an option of encoders: choose from {names}.", field="encoders"
        )
    return text[: begin.start()].strip(), EncoderParameters(**values)


def write_encoder(name: str, parameters: EncoderParameters) -> str:
    """Return the text that `read_encoder` parses."""
    options = ", ".join(f"{option}={quote(value)}" for option, value in parameters.list_changes().items())
    return f"{name}({options})" if options else name


def _parse_text(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def _parse_value(text: str) -> object | float | str:
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return convert_number(kind, text)
        except ValueError:
            continue
    return text
