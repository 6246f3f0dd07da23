"""The protocol of rerankers, and its records."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchbench.errors import BenchbenchError
from benchbench.ir.ranking import UnitKind
from benchbench.ir.records import Scores


class RerankerError(BenchbenchError):
    """A reranker that cannot score the chunks of an index."""

    code = "reranker"


@dataclass(frozen=True, slots=True)
class PairScores:
    """Of one query and n texts: the scores that order (n,), and those that thresholds compare (n,).

    The second become shares of one by `benchbench.ir.ranking.unit_scores`, under the reranker's kind.
    """

    scores: Scores
    threshold_scores: Scores


class Reranker(Protocol):
    """Scores how well texts answer a query. A pair's score does not depend on the pairs it is scored with."""

    name: str
    model_name: str  # the model that its revision is one of: itself, or the encoder of the index that it is made for
    revision: str  # what its scores depend on besides its name and the chunk set: scores of one revision compare

    @property
    def kind(self) -> UnitKind:
        """How its scores come to the scale on which thresholds compare."""

    def prepare(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> None:
        """Make what scoring these texts for any query needs and no query should pay for. `on_part` may raise."""

    def score(self, query: str, texts: Sequence[str]) -> PairScores:
        """Return the raw scores of each text, in the order of the texts. A text may be empty; there may be none."""

    def combine(self, first: Scores, scores: Scores) -> Scores:
        """Return the scores (n,) that order one list, of its chunks' first-stage scores and the reranker's own."""
