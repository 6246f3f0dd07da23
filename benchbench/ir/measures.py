"""What a ranking is worth: measures as values, and their computation for many queries at once.

Definitions are trec_eval's. A document is relevant when its grade is above 0; a negative grade is a judgment, and gains
nothing. R, AP and the ideal of nDCG divide by all relevant judgments of the query, found or not: a judgment whose
document cannot be found stands in the truth under an id that no ranking contains. A query without relevant judgments,
or without results, scores 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError

Values = NDArray[np.float64]
EmptyQueries = Literal["zero", "skip"]


class MeasureError(BenchbenchError):
    """A text that names no measure."""

    code = "measure"


@dataclass(frozen=True, slots=True, repr=False)
class Measure:
    """The definition `nDCG@10`; its text parses back. A cutoff of 0 looks at nothing and is worth 0."""

    name: str
    cutoff: int | None = None

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise MeasureError(f"There is no measure {self.name!r}; there are {', '.join(MEASURES)}.")
        if self.cutoff is None and self.name in NEED_CUTOFF:
            raise MeasureError(f"The measure {self.name} needs a cutoff, such as {self.name}@10.")

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure that `text` names, such as `nDCG@10` or `RR`. Raises MeasureError."""
        written = re.fullmatch(r"(\w+)(?:@([0-9]+))?", text)
        if written is None:
            raise MeasureError(f"{text!r} is not a measure; write a name and a cutoff, such as nDCG@10.")
        return cls(written[1], int(written[2]) if written[2] else None)

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    __repr__ = __str__

    @property
    def wire(self) -> str:
        """Its name in the API, exports and events."""
        name = WIRE_NAMES.get((self.name, self.cutoff is not None), self.name)
        return name if self.cutoff is None else f"{name}@{self.cutoff}"


@dataclass(frozen=True, eq=False)
class GradedRankings:
    """Rankings of q queries with each document replaced by its grade: all that a measure needs to know.

    Arrays are read along the last axis and never reordered. Running sums go rank by rank, so that how far a batch is
    padded does not change the last bit of a value.
    """

    grades: Values
    """(q, depth): the grade at each rank; NaN where there is no judgment, and past the end of the ranking."""
    lengths: NDArray[np.int64]
    """(q,): how many documents each ranking holds."""
    ideal: Values
    """(q, width): the grades above 0 of each query's truth, falling, then zeros."""
    n_relevant: NDArray[np.int64]
    """(q,): how many judgments of each query are relevant."""

    @classmethod
    def of(
        cls, rankings: Sequence[Sequence[Hashable] | NDArray[Any]], truths: Sequence[Mapping[Any, float]]
    ) -> GradedRankings:
        """Grades `rankings[i]` (document ids, best first, none twice) by `truths[i]` (document id → grade)."""
        return Truths.of(truths).grade(rankings)

    @property
    def has_relevant(self) -> NDArray[np.bool_]:
        return self.n_relevant > 0

    @cached_property
    def ranks(self) -> Values:
        return np.arange(1.0, self.grades.shape[-1] + 1.0)

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        return self.grades > 0

    @cached_property
    def hits(self) -> Values:
        """How many relevant documents stand at each rank or above."""
        return np.cumsum(self.relevant, axis=-1, dtype=np.float64)

    @cached_property
    def judged(self) -> Values:
        """How many judged documents stand at each rank or above."""
        return np.cumsum(~np.isnan(self.grades), axis=-1, dtype=np.float64)

    @cached_property
    def precisions(self) -> Values:
        """The sum of the precisions at the relevant documents at each rank or above."""
        return np.cumsum(np.where(self.relevant, self.hits / self.ranks, 0.0), axis=-1)

    @cached_property
    def dcg(self) -> Values:
        return _discounted(np.where(self.relevant, self.grades, 0.0))

    @cached_property
    def ideal_dcg(self) -> Values:
        return _discounted(self.ideal)


@dataclass(frozen=True, eq=False)
class Truths:
    """The truths of q queries, prepared once to grade the rankings of any number of runs."""

    grades: Sequence[Mapping[Any, float]]
    """Per query: document id → grade."""
    ideal: Values
    n_relevant: NDArray[np.int64]

    @classmethod
    def of(cls, truths: Sequence[Mapping[Any, float]]) -> Truths:
        relevant = [sorted((grade for grade in truth.values() if grade > 0), reverse=True) for truth in truths]
        return cls(truths, *_padded(relevant, 0.0))

    def grade(self, rankings: Sequence[Sequence[Hashable] | NDArray[Any]]) -> GradedRankings:
        """Grades one ranking per query (document ids, best first, none twice)."""
        grades, lengths = grade_matrix(rankings, self.grades)
        return GradedRankings(grades, lengths, self.ideal, self.n_relevant)


def grade_matrix(
    rankings: Sequence[Sequence[Hashable] | NDArray[Any]], truths: Sequence[Mapping[Any, float]]
) -> tuple[Values, NDArray[np.int64]]:
    """The grades of the ranked documents, (q, depth), and the length of each ranking, (q,).

    NaN stands for a document without judgment and, past a ranking's length, for no document. Ids may be anything
    hashable; an array of ids is looked up as Python values.
    """
    unjudged = math.nan
    rows = [
        list(map(truth.get, ranking.tolist() if isinstance(ranking, np.ndarray) else ranking, repeat(unjudged)))
        for ranking, truth in zip(rankings, truths, strict=True)
    ]
    return _padded(rows, unjudged)


def evaluate(measures: Sequence[Measure], graded: GradedRankings) -> Values:
    """The value of each measure for each query, (len(measures), q), at full precision."""
    values = [MEASURES[measure.name](graded, measure.cutoff) for measure in measures]
    return np.stack(values) if values else np.empty((0, len(graded.lengths)))


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """The means of m measures over the queries that count, and how many queries those are.

    `values` is (m,), NaN where no query counts: a mean of nothing is not 0. `empty` counts the answered queries without
    relevant judgments, which the policy counted as 0 or skipped.
    """

    values: Values
    counted: int
    empty: int
    failed: int


def mean(
    values: Values,
    *,
    has_relevant: NDArray[np.bool_],
    failed: NDArray[np.bool_] | None = None,
    empty: EmptyQueries = "zero",
) -> Means:
    """The plain mean over queries of each row of `values` (m, q), correctly rounded, so independent of their order.

    `failed` (q,) marks the queries that ended in an error: never counted. Queries without relevant judgments, by
    `has_relevant` (q,), count with the value they have (0) or, with `empty="skip"`, not at all.
    """
    answered = np.ones(has_relevant.shape, bool) if failed is None else ~failed
    counted = answered & has_relevant if empty == "skip" else answered
    n = int(counted.sum())
    means = [math.fsum(row) / n if n else math.nan for row in values[:, counted].tolist()]
    return Means(
        values=np.array(means, np.float64),
        counted=n,
        empty=int((answered & ~has_relevant).sum()),
        failed=int((~answered).sum()),
    )


def _precision(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(_until(graded.hits, cutoff), cutoff or 0)


def _recall(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(_until(graded.hits, cutoff), graded.n_relevant)


def _ndcg(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(_until(graded.dcg, cutoff), _until(graded.ideal_dcg, cutoff))


def _average_precision(graded: GradedRankings, cutoff: int | None) -> Values:
    return _ratio(_until(graded.precisions, cutoff), graded.n_relevant)


def _reciprocal_rank(graded: GradedRankings, cutoff: int | None) -> Values:
    first = graded.relevant.argmax(axis=-1) + 1.0
    return np.where(_until(graded.hits, cutoff) > 0, 1.0 / first, 0.0)


def _success(graded: GradedRankings, cutoff: int | None) -> Values:
    return (_until(graded.hits, cutoff) > 0).astype(np.float64)


def _judged(graded: GradedRankings, cutoff: int | None) -> Values:
    """Divides by the documents there are: a short ranking is not an unjudged one."""
    seen = graded.lengths if cutoff is None else np.minimum(graded.lengths, cutoff)
    return _ratio(_until(graded.judged, cutoff), seen)


MEASURES: dict[str, Callable[[GradedRankings, int | None], Values]] = {
    "P": _precision,
    "R": _recall,
    "nDCG": _ndcg,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "Success": _success,
    "Judged": _judged,
}
NEED_CUTOFF = frozenset({"P", "R", "Success"})
WIRE_NAMES = {  # by name and whether there is a cutoff
    ("P", True): "precision",
    ("R", True): "recall",
    ("nDCG", True): "ndcg",
    ("AP", True): "map",
    ("AP", False): "ap",
    ("RR", False): "mrr",
}


def _until(running: Values, cutoff: int | None) -> Values:
    """A running sum (q, depth ≥ 1) read at the cutoff, or at the last rank where there is none or it lies beyond."""
    if cutoff == 0:
        return np.zeros(running.shape[:-1])
    depth = running.shape[-1]
    return running[..., (depth if cutoff is None else min(cutoff, depth)) - 1]


def _discounted(gains: Values) -> Values:
    """Running sums of gain / log2(rank + 1)."""
    return np.cumsum(gains / np.log2(np.arange(2.0, gains.shape[-1] + 2.0)), axis=-1)


def _ratio(part: Values, whole: Values | NDArray[np.int64] | int) -> Values:
    return np.divide(part, whole, out=np.zeros_like(part), where=np.greater(whole, 0))


def _padded(rows: Sequence[Sequence[float]], filler: float) -> tuple[Values, NDArray[np.int64]]:
    """Rows of unequal length as a matrix of at least one column, and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    matrix = np.full((len(rows), max(lengths.max(initial=0), 1)), filler)
    for row, values in zip(matrix, rows, strict=True):
        row[: len(values)] = values
    return matrix, lengths
