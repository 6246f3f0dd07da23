"""Orders of a round: which pairs of its pool are judged, in which order, and which of them are a uniform sample."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.judging.errors import RoundError
from apps.judging.models import Round
from benchbench.ir.judging.evidence import Axes, Evidence
from benchbench.ir.judging.fillings import require_measure
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.orders import (
    by_query_order,
    depth_order,
    query_order,
    random_order,
    sampled,
    upcoming,
    weight_order,
)
from benchbench.ir.judging.pool import JudgingError, Pool
from benchbench.ir.measures import Measure

Numbers = NDArray[np.int64]
Truths = Sequence[Mapping[Any, float]]


@dataclass(frozen=True, slots=True)
class Placed:
    """The pairs of a pool that are items, by their numbers in the order of the round; those of the uniform sample.

    `probability` is that with which any pair without a judgment is in the sample, sample size / pairs, once all these
    items are judged. A round that stops before has a smaller sample (`RoundState`).
    """

    numbers: list[int]
    sample: frozenset[int]
    probability: float


@dataclass(frozen=True, slots=True)
class Question:
    """What a round asks: which of these runs is better by a measure, with the judgments that there are."""

    pool: Pool
    measure: Measure
    scale: Sequence[int]
    truths: Truths
    seed: int
    axes: Axes | None = None
    """What the texts of the pairs say (`benchbench.ir.judging.evidence`); None without vectors, as before a round is
    opened."""

    def check(self, order: str) -> None:
        """Raise RoundError for a measure that no round can decide, and runs that the decisive order cannot weigh."""
        try:
            require_measure(self.measure)
            if order == Round.Order.DECISIVE:
                self.judging()
        except JudgingError as error:
            raise RoundError(error.message, field=error.field or "order") from error

    def judging(self) -> Judging:
        """Return the judging of the pool as it begins. Raises JudgingError where the runs cannot be compared.

        What is relevant is learnt from the round's own grades alone where the dataset states relevant documents only:
        by those every document would be relevant.
        """
        is_fair = any(grade <= 0 for truth in self.truths for grade in truth.values())
        known = self.pool, self.measure, self.scale, self.truths
        return Judging(*known, seed=self.seed, truths_teach=is_fair, evidence=Evidence(self.axes))

    def holes(self) -> NDArray[np.bool_]:
        """(size,): which pairs have no judgment: those that a round is about."""
        cells: NDArray[np.bool_] = np.isnan(self.pool.grades(self.truths))[tuple(self.pool.cells.T)]
        return cells

    def sample_order(self, holes: NDArray[np.bool_]) -> Numbers:
        """The pairs without a judgment in the order in which the uniform sample takes them."""
        order = random_order(self.pool, seed=self.seed)
        return order[holes[order]]


def place(question: Question, *, order: str, budget: int | None, uniform_share: float) -> Placed:
    """Return the items of a round in their order.

    A budget ends every order but the decisive one. Of that every pair is an item, since what comes next depends on the
    grades; the budget counts what is handed out.
    """
    holes = question.holes()
    sample = question.sample_order(holes)
    share = 1.0 if order == Round.Order.RANDOM else uniform_share
    sequence = list(upcoming(_primary(question, order, holes, sample), sample, (), share=share))
    judged = len(sequence) if budget is None else min(budget, len(sequence))
    drawn = sampled(judged, share, len(sample))
    return Placed(
        sequence if order == Round.Order.DECISIVE else sequence[:judged],
        frozenset(sample[:drawn].tolist()),
        drawn / max(len(sample), 1),
    )


def _primary(question: Question, order: str, holes: NDArray[np.bool_], sample: Numbers) -> Numbers:
    if order == Round.Order.RANDOM:
        return sample
    if order == Round.Order.DEPTH:
        primary = depth_order(question.pool)
    elif order == Round.Order.QUERIES:
        primary = by_query_order(question.pool, query_order(question.pool, seed=question.seed))
    else:
        primary = weight_order(question.judging().weights())
    return primary[holes[primary]]
