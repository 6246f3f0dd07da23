"""Rankings with each document replaced by its grade: all that a measure needs to know."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


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
    truths: Sequence[Mapping[Any, float]]
    """Per query: document id → grade, the judgments that no ranking reached among them."""

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
    def first_relevant(self) -> Values:
        """The rank of the first relevant document, (q,); 1 where there is none."""
        first: Values = self.relevant.argmax(axis=-1) + 1.0
        return first

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
        return discounted(np.where(self.relevant, self.grades, 0.0))

    @cached_property
    def ideal_dcg(self) -> Values:
        return discounted(self.ideal)


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
        return GradedRankings(grades, lengths, self.ideal, self.n_relevant, self.grades)


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


def discounted(gains: Values) -> Values:
    """Running sums of gain / log2(rank + 1)."""
    return np.cumsum(gains / np.log2(np.arange(2.0, gains.shape[-1] + 2.0)), axis=-1)


def _padded(rows: Sequence[Sequence[float]], filler: float) -> tuple[Values, NDArray[np.int64]]:
    """Rows of unequal length as a matrix of at least one column, and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    matrix = np.full((len(rows), max(lengths.max(initial=0), 1)), filler)
    for row, values in zip(matrix, rows, strict=True):
        row[: len(values)] = values
    return matrix, lengths
