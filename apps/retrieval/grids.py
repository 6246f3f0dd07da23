"""Index grids, planned and made: which of its indexes are there already, which are to be made, which cannot be."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, product
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.retrieval import indexing
from apps.retrieval.availability import UnavailableError, lack, parts_of
from apps.retrieval.building import IndexingError, require_bounded
from apps.retrieval.models import Index, Ingredients
from apps.retrieval.naming import index_name, longer_names
from apps.retrieval.strategies import STRATEGIES
from apps.retrieval.strategies.base import StrategyError
from benchbench.database.failures import read_again
from benchbench.names import MAX_LENGTH, free_name
from benchbench.reading.kinds import CallError, read_options
from benchbench.reading.objects import shown

BEFORE: Mapping[str, str] = {
    Index.Status.FAILED: "failed before, will be built again",
    Index.Status.CANCELLED: "was cancelled, will be built again",
}
STRATEGY = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<options>[^()]*)\)\s*)?")
EXAMPLE = "flat(size=500, overlap=50)"
WORDS: dict[str, Any] = {"true": True, "false": False}
NO_LLM: tuple[str, Mapping[str, Any]] = ("", {})


@dataclass(frozen=True)
class Grid:
    """Strategies with their parameters, names of encoders, language models with theirs, and stores that are searched.

    An encoder "" is search by words alone. Indexes have no store: those of one grid serve each of its stores.
    """

    strategies: Sequence[tuple[str, Mapping[str, Any]]]
    encoders: Sequence[str]
    llms: Sequence[tuple[str, Mapping[str, Any]]] = ()
    lexical: bool = True
    stores: Sequence[str] = ("",)

    def combinations(self) -> list[tuple[Ingredients, str]]:
        """Return each distinct combination of an index and a store, strategies varying slowest, then stores.

        Language models vary where the strategy asks one.
        """
        combined = []
        for strategy, parameters in self.strategies:
            asks = strategy in STRATEGIES and STRATEGIES[strategy].requires_llm
            llms = (self.llms if asks else ()) or [NO_LLM]
            for store, encoder, (llm, llm_parameters) in product(self.stores, self.encoders, llms):
                models = encoder.strip(), llm.strip(), dict(llm_parameters)
                combined.append((Ingredients(strategy, dict(parameters), *models, self.lexical), store))
        return _distinct(combined)

    def ingredients(self) -> list[Ingredients]:
        """Return what each distinct index is made of."""
        return _distinct([made_of for made_of, _ in self.combinations()])


def _distinct(values: list[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value not in values[:place]]


@dataclass(frozen=True)
class Cell:
    """A place of a grid: `index` where there is an equal one, `lacking` what of it is not to be had here."""

    name: str
    made_of: Ingredients
    index: Index | None = None
    lacking: str = ""
    store: str = ""

    @property
    def state(self) -> str:
        """What is to be done: it is "ready", or "unavailable", or "begun" before, or "new"."""
        if self.lacking:
            return "unavailable"
        if self.index is None:
            return "new"
        return "ready" if self.index.status == Index.Status.READY else "begun"

    @property
    def told(self) -> str:
        """What is to be done, as pages say it; "" of one that cannot be made."""
        if self.index is not None and self.state == "begun":
            return BEFORE.get(self.index.status, "is there, still to be built")
        return {"ready": "is there", "new": "will be made"}.get(self.state, "")

    def as_dict(self) -> dict[str, Any]:
        made_of = {name: value for name, value in asdict(self.made_of).items() if name != "lexical"}
        index = self.index.pk if self.index else None
        return {"name": self.name, "state": self.state, **made_of, "index": index, "error": self.lacking or None}


@dataclass(frozen=True)
class Made:
    """An index of a grid, and the operation that builds it; none where it is ready."""

    cell: Cell
    index: Index
    operation: Operation | None


def plan_grid(collection: Collection, grid: Grid, *, owner: Any = None) -> list[Cell]:
    """Return each distinct index of a grid over a collection, as `owner` sees it; nothing is made.

    Raises IndexingError for an empty axis, for more indexes than BENCHMARK_MAX_VALUES_PER_AXIS, for one of more chunks
    than BENCHBENCH_MAX_CHUNKS, and for one that would find nothing; StrategyError and ChunkingError for parameters,
    LLMError for those of a language model.
    """
    for one, many in (("strategy", "strategies"), ("encoder", "encoders")):
        if not getattr(grid, many):
            raise IndexingError(f"There is nothing to make: name at least one {one}.", field=many)
    cells: list[Cell] = []
    for cell in _cells(collection, grid, owner):
        if cell.made_of not in [planned.made_of for planned in cells]:
            cells.append(cell)
    if len(cells) > settings.BENCHMARK_MAX_VALUES_PER_AXIS:
        raise IndexingError(
            f"These are {len(cells)} indexes; at most {settings.BENCHMARK_MAX_VALUES_PER_AXIS} are made at once "
            "(BENCHMARK_MAX_VALUES_PER_AXIS). Shorten a list."
        )
    return cells


@transaction.atomic
def make_grid(collection: Collection, grid: Grid, *, owner: User | None = None, by: User | None = None) -> list[Made]:
    """Make the indexes of a grid that are not there, and have those built that are not ready; all of them or none.

    They belong to `owner`, and count against the quota of `by`. Raises UnavailableError for all that is not to be had
    here, QuotaError, and as `plan_grid` and `create_index` do.
    """
    locked = _lock(collection)
    cells = plan_grid(locked, grid, owner=owner)
    if lacking := dict.fromkeys(cell.lacking for cell in cells if cell.lacking):
        raise UnavailableError(f"Nothing is made, since not all is to be had here: {'; '.join(lacking)}.")
    made = []
    for cell in cells:
        index = indexing.index_of(locked, cell.made_of, name=cell.name, owner=owner)
        operation = None if index.status == Index.Status.READY else indexing.building_of(index, by=by or owner)
        made.append(Made(cell, index, operation))
    return made


@transaction.atomic
def declare_indexes(collection: Collection, grid: Grid, *, owner: User | None = None) -> dict[str, Index]:
    """Return each index of a grid under a name that tells it from the others: the one that is there, or a new one, not
    built. One that is not to be had here has failed, and says why.

    Raises as `plan_grid` and `create_index` do.
    """
    locked = _lock(collection)
    declared: dict[str, Index] = {}
    for cell in _cells(locked, grid, owner):
        if cell.lacking:
            reason = f"{cell.lacking[0].upper()}{cell.lacking[1:]}."
            index = indexing.unavailable_index(locked, cell.made_of, name=cell.name, reason=reason, owner=owner)
        else:
            index = indexing.index_of(locked, cell.made_of, name=cell.name, owner=owner)
        declared[free_name(cell.name, declared)] = index
    return declared


def _lock(collection: Collection) -> Collection:
    """Return the collection, locked, so that two callers do not make the same index."""
    return read_again(Collection.objects.select_for_update(no_key=True), collection.pk)


def _cells(collection: Collection, grid: Grid, owner: Any) -> Iterator[Cell]:
    """Yield the plan of each index; a new one is called as none before it, and as no other index of the collection."""
    taken: list[str] = []
    for made_of in grid.ingredients():
        cell = _plan_cell(collection, made_of, owner, taken)
        taken.append(cell.name)
        yield cell


def _plan_cell(collection: Collection, made_of: Ingredients, owner: Any, taken: Sequence[str]) -> Cell:
    if lacking := lack(parts_of(made_of)):
        return Cell(free_name(index_name(made_of), taken), made_of, lacking=lacking)
    made_of = indexing.complete(made_of)
    indexing.require_searchable(index_name(made_of), made_of.strategy, made_of.encoder, made_of.lexical)
    index = indexing.index_there(collection, made_of, owner=owner)
    if index is None:
        require_bounded(collection, made_of.strategy, made_of.chunk_parameters)
    made = index is not None and index.status in (Index.Status.READY, Index.Status.INDEXING)
    lacking = "" if made else lack(parts_of(made_of, to_build=True))
    return Cell(index.name if index else _new_name(collection, made_of, taken), made_of, index, lacking)


def _new_name(collection: Collection, made_of: Ingredients, taken: Sequence[str]) -> str:
    """Return a name under which the collection has nothing but older versions of the same."""
    others = Index.objects.filter(collection=collection).exclude(**asdict(made_of), vector_source="")
    names = {*taken, *others.values_list("name", flat=True)}
    wanted = [name[:MAX_LENGTH] for name in chain([index_name(made_of)], longer_names(made_of))]
    return next((name for name in wanted if name not in names), free_name(wanted[-1], names))


def read_strategy(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a strategy as people write it: "flat", "lod_embed(doc_top_k=3)".

    Raises StrategyError.
    """
    match = STRATEGY.fullmatch(text)
    if match is None:
        raise StrategyError(f"{shown(text)} is not a strategy such as flat or {EXAMPLE}.", field="strategies")
    try:
        options = read_options(match["options"] or "", example="size=500")
    except CallError as error:
        raise StrategyError(f"{text}: {error}", field="strategies") from None
    return match["name"], {name: _value(value) for name, value in options.items()}


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
