"""The protocol of rerankers and its records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import UnitKind
from benchbench.ir.records import Scores


class RerankerError(BenchbenchError):
    """A reranker cannot score the chunks of an index."""

    code = "reranker"


@dataclass(frozen=True, slots=True)
class PairScores:
    """The scores of one query with n texts: those for ranking (n,) and those for thresholds (n,).

    `benchbench.ir.ranking.scale_scores` maps the latter to [0, 1], depending on the reranker's kind.
    """

    scores: Scores
    threshold_scores: Scores


class Reranker(Protocol):
    """A reranker: it scores how well texts answer a query. A pair's score does not depend on other pairs."""

    name: str
    model_name: str  # the model that `revision` refers to: its own, or the encoder of its index
    revision: str  # scores of equal name, chunk set and revision are comparable

    @property
    def kind(self) -> UnitKind:
        """Return the method of mapping its scores to the scale of thresholds."""

    def prepare(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> None:
        """Precompute what scoring these texts needs for any query, outside of query times. `on_part` may raise."""

    def score(self, query: str, texts: Sequence[str]) -> PairScores:
        """Return the raw scores of the texts in their order. Texts may be empty, and so may `texts`."""

    def find_cut(self, query: str, texts: Sequence[str]) -> list[int]:
        """Return the numbers of the texts whose pairs with the query are longer than it reads.

        What an index counts as not read of its texts is left out.
        """

    def combine(self, first: Scores, scores: Scores) -> Scores:
        """Combine the first-stage scores of a list and the reranker's own into the scores (n,) that order it."""
