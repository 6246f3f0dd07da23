"""Base classes of retrieval strategies, and their inputs and outputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from apps.collections.records import DocumentRecord
from apps.retrieval.llms.clients import Reply
from benchbench.errors import BenchbenchError
from benchbench.ir.chunking import check_chunk_parameters
from benchbench.ir.planning.strategies import FIT
from benchbench.ir.planning.strategies import STRATEGIES as DECLARED
from benchbench.ir.records import NO_CALLS, Calls, Mask, Positions, ScoredList, Vectors
from benchbench.ir.trees import Tree

Parameters = Mapping[str, Any]


class StrategyError(BenchbenchError):
    """A strategy is unknown, or its parameters are invalid."""

    code = "strategy"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a document to index: a chunk (level 0), or a summary above chunks.

    `text` is encoded; [start, end) is the span of the document's text that it covers. `section` is the number of its
    section in the document, or None. `children` are indices, from 0, among the document's pieces on the level below.
    """

    text: str
    start: int
    end: int
    level: int = 0
    section: int | None = None
    children: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query to search: its text, vector (d,), and the mask (n,) of positions admitted by its filter; None for all."""

    text: str
    vector: Vectors
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a strategy for one query: ranked chunks, and the model calls used.

    `ms` is the time of the query; None if queries were searched together, which the engine times.
    """

    ranked: ScoredList
    calls: Calls = NO_CALLS
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A position described for a language model: the ids of its document and section ("" if none), and its text."""

    document: str
    section: str
    text: str


class View(Tree, Protocol):
    """The view of an open index for a strategy: level and children of each position (n,), and nearest neighbours."""

    def find_nearest(self, queries: Vectors, depth: int, masks: Sequence[Mask | None]) -> list[ScoredList]:
        """Return the nearest positions to each of `queries` (q, d), among those admitted by its mask (n,)."""

    def load_passages(self, positions: Positions) -> list[Passage]:
        """Return the descriptions of `positions`, in their order."""

    def ask(self, prompt: str, accepts: Callable[[str], bool]) -> Reply:
        """Return the answer of the index's language model, stored only if `accepts` returns true. Raises LLMError."""


class RetrievalStrategy(ABC):
    """A retrieval strategy: it cuts documents into chunks and searches them. `declared` is its declaration.

    It has no state: encoding, storing, resuming and timing belong to the build, caches to the open index. A strategy
    with levels creates summaries above its chunks, which have vectors too; its results are always chunks.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared = declared = DECLARED[name]
        self.requires_llm, self.asks, self.levels = declared.requires_llm, declared.asks, declared.levels
        self.has_summaries = declared.levels > 1 or isinstance(self, TreeStrategy)  # any levels above its chunks
        self.of_search = {name for name, parameter in declared.parameters.items() if parameter.of_search}

    def check(self, parameters: Parameters) -> dict[str, Any]:
        """Return complete parameters in canonical form, without a false FIT. Raises StrategyError, ChunkingError."""
        complete = {**self.declared.defaults, **parameters}
        if _list_types(complete) != _list_types(self.declared.defaults):
            raise StrategyError(
                f"Chunk parameters must be like {self.declared.example}, with sizes in characters, not "
                f"{dict(parameters)}.",
                field="chunk_parameters",
            )
        check_chunk_parameters(size=complete["size"], overlap=complete["overlap"])
        for name, parameter in self.declared.parameters.items():
            if parameter.kind and not parameter.kind.holds(complete[name]):
                raise StrategyError(f"{name} must be {parameter.kind.words}, not {complete[name]!r}.", field=name)
        return {name: value for name, value in complete.items() if name != FIT or value}

    @abstractmethod
    def cut_chunks(self, document: DocumentRecord, parameters: Parameters) -> list[Piece]:
        """Cut one document, with parameters from `check`, into chunks in the order of its text."""

    def add_levels(self, document: DocumentRecord, chunks: list[Piece]) -> list[Piece]:
        """Return the chunks of a document and the pieces above them. Those of a level are in the order of its text."""
        return chunks

    @abstractmethod
    def search(self, queries: Sequence[SearchQuery], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        """Return the best `depth` chunks for each query, with parameters from `check`."""


class TreeStrategy(RetrievalStrategy):
    """A strategy that adds summaries above the chunks during the build, each level from the vectors below it."""

    @abstractmethod
    def find_clusters(
        self, vectors: Vectors, lengths: NDArray[np.int64], level: int, parameters: Parameters
    ) -> list[NDArray[np.int64]]:
        """Return the members of each summary of a `level` (from 1), as rows of the level below.

        `vectors` (n, d) and `lengths` (n,), in characters, are those of the level below. Empty if the tree ends there.
        """

    @abstractmethod
    def summarise(self, texts: Sequence[str], ask: Callable[[str], str]) -> str:
        """Return the summary of a cluster's texts. `ask` returns a language model's answer to a prompt."""


def stack_vectors(queries: Sequence[SearchQuery]) -> Vectors:
    """Return the vectors of queries, (q, d). Needs at least one query."""
    return np.stack([query.vector for query in queries])


def _list_types(parameters: Parameters) -> dict[str, type]:
    return {name: type(value) for name, value in parameters.items()}
