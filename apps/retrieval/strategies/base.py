"""Retrieval strategies: what one is, and what it is given."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from apps.collections.records import DocumentRecord
from apps.retrieval.llms.clients import Reply
from benchbench.errors import BenchbenchError
from benchbench.ir.chunking import check_chunk_parameters
from benchbench.ir.planning.strategies import STRATEGIES as DECLARED
from benchbench.ir.records import NO_CALLS, Calls, Mask, Positions, ScoredList, Vectors
from benchbench.ir.trees import Tree

Parameters = Mapping[str, Any]


class StrategyError(BenchbenchError):
    """A strategy that is unknown, or parameters that it cannot work with."""

    code = "strategy"


@dataclass(frozen=True, slots=True)
class Piece:
    """What is to be indexed of a document: a chunk (level 0), or a summary above chunks.

    `text` is what is encoded, [start, end) the span of the document's text that it stands for. `section` is the number
    of its section among the document's; None where it is of no one section. `children` are places of pieces among those
    that the document has on the level below, from 0.
    """

    text: str
    start: int
    end: int
    level: int = 0
    section: int | None = None
    children: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that is searched: its text, its vector (d,), and which positions (n,) its filter admits; None: all."""

    text: str
    vector: Vectors
    mask: Mask | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a strategy found for one query: chunks, and the calls that it took.

    `ms` is what the query itself took; None where queries were searched together, whose time the engine takes.
    """

    ranked: ScoredList
    calls: Calls = NO_CALLS
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """What a reader is told of a position: the ids of its document and section ("" without one), and its text."""

    document: str
    section: str
    text: str


class View(Tree, Protocol):
    """What a strategy sees of an open index: the level and the children of each position (n,), and what is near."""

    def nearest(self, queries: Vectors, depth: int, masks: Sequence[Mask | None]) -> list[ScoredList]:
        """The nearest positions to each of `queries` (q, d), among those that its mask (n,) of `masks` admits."""

    def described(self, positions: Positions) -> list[Described]:
        """What there is to be read at `positions`, in their order."""

    def ask(self, prompt: str, accepts: Callable[[str], bool]) -> Reply:
        """What the language model of the index answers; only an answer that `accepts` is stored. Raises LLMError."""


class RetrievalStrategy(ABC):
    """How documents become chunks, and how a query finds them; `declared` is what is said of it.

    It has no state: encoding, storing, resuming and timing belong to the build, caches to the open index. A strategy
    over levels makes summaries above its chunks, which have vectors too; what it finds are always chunks.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared = declared = DECLARED[name]
        self.requires_llm, self.asks, self.levels = declared.requires_llm, declared.asks, declared.levels
        self.has_summaries = declared.levels > 1 or isinstance(self, TreeStrategy)  # levels above its chunks
        self.of_search = {name for name, parameter in declared.parameters.items() if parameter.of_search}

    def check(self, parameters: Parameters) -> dict[str, Any]:
        """Return the parameters complete, in one form for one meaning. Raises StrategyError, ChunkingError."""
        complete = {**self.declared.defaults, **parameters}
        if _types(complete) != _types(self.declared.defaults):
            raise StrategyError(
                f"Chunk parameters are {self.declared.example}, sizes in characters; not {dict(parameters)}.",
                field="chunk_parameters",
            )
        check_chunk_parameters(size=complete["size"], overlap=complete["overlap"])
        for name, parameter in self.declared.parameters.items():
            if parameter.kind and not parameter.kind.holds(complete[name]):
                raise StrategyError(f"{name} is {parameter.kind.words}; not {complete[name]!r}.", field=name)
        return complete

    @abstractmethod
    def chunks(self, document: DocumentRecord, parameters: Parameters) -> Iterable[Piece]:
        """Cut one document, by parameters that `check` returned; pieces of a level in the order of the text."""

    @abstractmethod
    def search(self, queries: Sequence[Asked], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        """The best `depth` chunks for each query, by parameters that `check` returned."""


class TreeStrategy(RetrievalStrategy):
    """A strategy whose index grows summaries above its chunks while it is built, level by level, each by the vectors
    of the level below."""

    @abstractmethod
    def clusters(
        self, vectors: Vectors, lengths: NDArray[np.int64], level: int, parameters: Parameters
    ) -> list[NDArray[np.int64]]:
        """What each summary of a `level` (1 and above) is of: rows of the level below, by the `vectors` (n, d) and the
        `lengths` (n,) of its texts in characters. None where the tree ends below."""

    @abstractmethod
    def summary(self, texts: Sequence[str], ask: Callable[[str], str]) -> str:
        """The summary of the texts of a cluster; `ask` gives a language model's answer to a prompt."""


def vectors_of(queries: Sequence[Asked]) -> Vectors:
    """The vectors of queries, (q, d). There must be one query at least."""
    return np.stack([query.vector for query in queries])


def _types(parameters: Parameters) -> dict[str, type]:
    return {name: type(value) for name, value in parameters.items()}
