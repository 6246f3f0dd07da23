"""The records that the stages of a search exchange, and those of a file of results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError

Positions = NDArray[np.int64]
Scores = NDArray[np.float64]
Vectors = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Calls:
    """Logical calls of a query, as if it were searched alone: encodings and calls of a language model.

    The cache answered `llm_cached` of the latter. `fallback_used`: the model named none of the offered candidates, so
    the search continued with others.
    """

    embed: int = 0
    llm: int = 0
    llm_cached: int = 0
    fallback_used: bool = False

    def __add__(self, addend: Calls) -> Calls:
        return Calls(
            self.embed + addend.embed,
            self.llm + addend.llm,
            self.llm_cached + addend.llm_cached,
            self.fallback_used or addend.fallback_used,
        )


NO_CALLS = Calls()


@dataclass(frozen=True, slots=True, eq=False)
class ScoredList:
    """One query's chunks and their scores, best first; no chunk occurs twice.

    `ids` are positions: row numbers of the chunk set, given in (external_id, chunk ordinal) order when it is made. So
    ascending position is the order in which equal scores rank, and nothing else need be carried to break ties.
    """

    ids: Positions
    scores: Scores
    threshold_scores: Scores | None = None  # what thresholds compare, where that is not what orders

    @classmethod
    def empty(cls) -> ScoredList:
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))

    def head(self, depth: int) -> ScoredList:
        """Return the first `depth` entries; all of them where there are fewer."""
        compared = None if self.threshold_scores is None else self.threshold_scores[:depth]
        return ScoredList(self.ids[:depth], self.scores[:depth], compared)

    def select(self, chosen: Mask) -> ScoredList:
        """Return the entries of a mask, (n,), in their order."""
        compared = None if self.threshold_scores is None else self.threshold_scores[chosen]
        return ScoredList(self.ids[chosen], self.scores[chosen], compared)

    @property
    def compared_scores(self) -> Scores:
        """Return the scores that thresholds compare, once `benchbench.ir.ranking.scale_scores` has scaled them."""
        return self.scores if self.threshold_scores is None else self.threshold_scores

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, value: object) -> bool:
        """Return whether both are bit-equal: the same chunks in the same order with the same scores."""
        if not isinstance(value, ScoredList):
            return NotImplemented
        first, second = ((scored.ids, scored.scores, scored.compared_scores) for scored in (self, value))
        return all(map(np.array_equal, first, second))

    __hash__ = None  # type: ignore[assignment]


Id = TypeVar("Id", str, bytes)


class RepeatedDocumentError(BenchbenchError):
    """A document occurs twice among the results of one query."""

    code = "repeated_document"


@dataclass(frozen=True, slots=True)
class ScoredDocuments(Generic[Id]):
    """The results of one query, in any order. `location` begins the sentence of an error: "bm25.run, query 'q1',"."""

    location: str
    documents: list[Id] = field(default_factory=list, repr=False)
    scores: list[float] = field(default_factory=list, repr=False)

    def rank(self) -> list[Id]:
        """Return the documents, best first, as trec_eval ranks them. Raises RepeatedDocumentError.

        By score as a float32, falling; equal ones by id, falling. Python orders text by code point, which is the order
        of its UTF-8 bytes. Our own order has ids rising, but figures of a file must be those of trec_eval.
        """
        if len(set(self.documents)) < len(self.documents):
            repeated = Counter(self.documents).most_common(1)[0][0]
            name = repeated.decode(errors="replace") if isinstance(repeated, bytes) else repeated
            raise RepeatedDocumentError(
                f"{self.location} ranks the document {name[:60]!a} more than once: rank each document once."
            )
        with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, in C too
            singles = np.array(self.scores).astype(np.float32)
        if (singles[1:] < singles[:-1]).all():  # as most files are written: nothing to sort
            return list(self.documents)
        return [document for _, document in sorted(zip(singles.tolist(), self.documents, strict=True), reverse=True)]
