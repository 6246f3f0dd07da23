"""Plans of index grids: which of its indexes are there already, which are to be made, which cannot be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from django.conf import settings

from apps.collections.models import Collection
from apps.retrieval.availability import lack, parts_of
from apps.retrieval.building import IndexingError, require_bounded
from apps.retrieval.grids.naming import index_name, longer_names
from apps.retrieval.indexing import require_searchable
from apps.retrieval.models import Index
from apps.retrieval.reusing import Ingredients, complete, index_there
from apps.retrieval.strategies import STRATEGIES
from benchbench.names import MAX_LENGTH, free_name

BEFORE: Mapping[str, str] = {
    Index.Status.FAILED: "failed before, will be built again",
    Index.Status.CANCELLED: "was cancelled, will be built again",
}


@dataclass(frozen=True)
class Grid:
    """Strategies with their parameters, names of encoders, language models with theirs; "" is search by words alone."""

    strategies: Sequence[tuple[str, Mapping[str, Any]]]
    encoders: Sequence[str]
    llms: Sequence[tuple[str, Mapping[str, Any]]] = ()
    lexical: bool = True

    def ingredients(self) -> Iterator[Ingredients]:
        """Yield what each index is made of, strategies varying slowest; models where the strategy asks one."""
        for strategy, parameters in self.strategies:
            asks = strategy in STRATEGIES and STRATEGIES[strategy].requires_llm
            for encoder in self.encoders:
                for llm, llm_parameters in (self.llms or [("", {})]) if asks else [("", {})]:
                    yield Ingredients(
                        strategy, dict(parameters), encoder.strip(), llm.strip(), dict(llm_parameters), self.lexical
                    )


@dataclass(frozen=True)
class Cell:
    """A place of a grid: `index` where there is an equal one, `lacking` what of it is not to be had here."""

    name: str
    made_of: Ingredients
    index: Index | None = None
    lacking: str = ""

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


def plan_grid(collection: Collection, grid: Grid, *, owner: Any = None) -> list[Cell]:
    """Return each distinct index of a grid over a collection, as `owner` sees it; nothing is made.

    Raises IndexingError for an empty axis, for more indexes than BENCHMARK_MAX_VALUES_PER_AXIS, for one of more chunks
    than BENCHBENCH_MAX_CHUNKS, and for one that would find nothing; StrategyError and ChunkingError for parameters,
    LLMError for those of a language model.
    """
    if not grid.strategies or not grid.encoders:
        what = "encoder" if grid.strategies else "strategy"
        raise IndexingError(f"There is nothing to make: name at least one {what}.", field=PLURALS[what])
    cells: list[Cell] = []
    for made_of in grid.ingredients():
        cell = plan_cell(collection, made_of, owner=owner, taken=[cell.name for cell in cells])
        if cell.made_of not in [there.made_of for there in cells]:
            cells.append(cell)
    if len(cells) > settings.BENCHMARK_MAX_VALUES_PER_AXIS:
        raise IndexingError(
            f"These are {len(cells)} indexes; at most {settings.BENCHMARK_MAX_VALUES_PER_AXIS} are made at once "
            "(BENCHMARK_MAX_VALUES_PER_AXIS). Shorten a list."
        )
    return cells


PLURALS = {"encoder": "encoders", "strategy": "strategies"}


def plan_cell(collection: Collection, made_of: Ingredients, *, owner: Any, taken: Sequence[str] = ()) -> Cell:
    """Return the plan of one index; a new one is called as none of `taken`, and as no other index is that is there."""
    if lacking := lack(parts_of(made_of)):
        return Cell(free_name(index_name(made_of), taken), made_of, lacking=lacking)
    made_of = complete(made_of)
    require_searchable(index_name(made_of), made_of.strategy, made_of.encoder, made_of.lexical)
    index = index_there(collection, made_of, owner=owner)
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
