"""The protocol of retrieval strategies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.records import ScoredList

Mask = NDArray[np.bool_]


class StrategyError(BenchbenchError):
    """A strategy that is unknown, or parameters that it cannot work with."""

    code = "strategy"


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk to be: the text that is encoded, and the span of the document's text that it stands for."""

    text: str
    start: int
    end: int


class Searchable(Protocol):
    """What a strategy sees of an open index."""

    def nearest(self, queries: NDArray[np.float32], depth: int, *, mask: Mask | None = None) -> list[ScoredList]:
        """The nearest chunks to each of `queries` (q, d), among those that `mask` (n,) admits."""


class RetrievalStrategy(Protocol):
    """How documents become chunks, and how a query's vector finds them.

    It has no state: encoding, storing, resuming and timing belong to the build, caches to the open index. A strategy
    over a tree of summaries cuts its leaves here and adds its levels in a further part of the build; one that routes
    through sections narrows the mask in `search`.
    """

    @property
    def name(self) -> str: ...

    @property
    def requires_llm(self) -> bool: ...

    def check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters complete, in one form for one meaning. Raises StrategyError, ChunkingError."""

    def chunks(self, title: str, text: str, parameters: Mapping[str, Any]) -> Iterable[Piece]:
        """Cut one document, by parameters that `check` returned."""

    def search(
        self, index: Searchable, queries: NDArray[np.float32], depth: int, *, mask: Mask | None = None
    ) -> Sequence[ScoredList]:
        """The best `depth` chunks for each of `queries` (q, d); `mask` (n,) admits chunks before they are ranked."""
