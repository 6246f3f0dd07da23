"""Graded rankings: each document replaced by its grade, the only input of a measure."""

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
MARKS = 2**16


class SharedGrades(dict[Any, Any]):
    """The grades of a query, document id → grade, in which several documents are one text.

    Every duplicate has the grade of its text. `originals` gives each further duplicate the document that stands for the
    text in the truth, so that the ideal ranking, the relevant judgments and R have the text once. In a ranking the
    first duplicate has the grade. Each further one is judged and gains nothing: its grade is at most 0. It stays at its
    rank, because a reader meets it there; so it counts as judged for Judged@k and stays in a condensed list. Bernstein
    and Zobel (2005, Redundant documents and search effectiveness) treat redundant documents so.
    """

    def __init__(self, grades: Mapping[Any, Any], originals: Mapping[Any, Any]) -> None:
        super().__init__(grades)
        self.originals = originals

    @property
    def distinct(self) -> dict[Any, Any]:
        """Return the grades with each text once."""
        return {document: grade for document, grade in self.items() if document not in self.originals}

    def rename(self, ranking: Sequence[Hashable]) -> list[Any]:
        """Return a ranking in which the first document of each text has changed ids with the original."""
        first: dict[Any, object] = {}
        for document in ranking:
            first.setdefault(self.originals.get(document, document), document)
        swapped = {**first, **{document: text for text, document in first.items()}}
        return [swapped.get(document, document) for document in ranking]

    def find_repeats(self, ranking: Sequence[Hashable]) -> list[int]:
        """Return the positions in a ranking of the documents whose text an earlier one has."""
        texts = [self.originals.get(document, document) for document in ranking]
        first = {text: position for position, text in reversed([*enumerate(texts)])}
        return [position for position, text in enumerate(texts) if first[text] < position]


def count_once(truth: Mapping[Any, object]) -> Mapping[Any, Any]:
    """Return the grades of a query with each text once: as they are, unless they are shared."""
    return truth.distinct if isinstance(truth, SharedGrades) else truth


def name_texts(truth: Mapping[Any, object], ranking: Sequence[object]) -> Sequence[Any]:
    """Return a ranking with the ids of `count_once`: as it is, unless the grades are shared."""
    return truth.rename(ranking) if isinstance(truth, SharedGrades) else ranking


@dataclass(frozen=True, eq=False)
class GradedRankings:
    """Rankings of q queries with each document replaced by its grade, the only input of a measure.

    Arrays are read along the last axis and never reordered. Running sums go rank by rank, so the padding of a batch
    does not change the last bit of a value.
    """

    # (q, depth): the grade at each rank; NaN without a judgment and past the end of the ranking.
    grades: Values
    lengths: NDArray[np.int64]  # (q,): how many documents each ranking holds
    ideal: Values  # (q, width): the grades above 0 of each query's truth, falling, then zeros
    n_relevant: NDArray[np.int64]  # (q,): how many judgments of each query are relevant
    # Per query: document id → grade, the judgments that no ranking reached among them.
    truths: Sequence[Mapping[Any, float]]

    @classmethod
    def from_rankings(
        cls, rankings: Sequence[Sequence[Hashable] | NDArray[Any]], truths: Sequence[Mapping[Any, float]]
    ) -> GradedRankings:
        """Grade `rankings[i]` (distinct document ids, best first) by `truths[i]` (document id → grade)."""
        return Truths.from_grades(truths).grade(rankings)

    def heads(self, lengths: NDArray[np.int64]) -> GradedRankings:
        """Return the first `lengths` (q,) documents of each ranking. No length may exceed that of the ranking.

        Heads share the running sums, so many heads of the same rankings cost little.
        """
        if np.array_equal(lengths, self.lengths):
            return self
        grades = np.where(np.arange(self.grades.shape[-1]) < lengths[:, None], self.grades, math.nan)
        head = GradedRankings(grades, lengths, self.ideal, self.n_relevant, self.truths)
        vars(head)["sums"] = self.sums  # where `cached_property` looks; a copy with other grades has sums of its own
        return head

    @cached_property
    def sums(self) -> RunningSums:
        return RunningSums(self.grades)

    def read_until(self, running: Values, cutoff: int | None) -> Values:
        """Return one of the running sums at the cutoff, or at a ranking's last document if it is shorter, (q,)."""
        width = running.shape[-1] if cutoff is None else min(cutoff, running.shape[-1])
        ends = np.minimum(self.lengths, width)
        read = np.take_along_axis(running, np.maximum(ends, 1)[:, None] - 1, axis=-1)[:, 0]
        return np.where(ends > 0, read, 0.0)

    @property
    def has_relevant(self) -> NDArray[np.bool_]:
        return self.n_relevant > 0

    @property
    def ranks(self) -> Values:
        return self.sums.ranks

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        return self.grades > 0

    @cached_property
    def ideal_dcg(self) -> Values:
        return discount(self.ideal)


@dataclass(frozen=True, eq=False)
class RunningSums:
    """Running sums over the ranks of graded rankings, (q, depth) each; `grades` are theirs."""

    grades: Values

    @cached_property
    def ranks(self) -> Values:
        return np.arange(1.0, self.grades.shape[-1] + 1.0)

    @cached_property
    def relevant(self) -> NDArray[np.bool_]:
        return self.grades > 0

    @cached_property
    def hits(self) -> Values:
        """Return the number of relevant documents at each rank or above."""
        return np.cumsum(self.relevant, axis=-1, dtype=np.float64)

    @cached_property
    def first_relevant(self) -> Values:
        """Return the rank of the first relevant document, (q,); 1 without a relevant document."""
        return np.asarray(self.relevant.argmax(axis=-1) + 1.0, np.float64)

    @cached_property
    def judged(self) -> Values:
        """Return the number of judged documents at each rank or above."""
        return np.cumsum(~np.isnan(self.grades), axis=-1, dtype=np.float64)

    @cached_property
    def precisions(self) -> Values:
        """Return the sum of the precisions at the relevant documents at each rank or above."""
        return np.cumsum(np.where(self.relevant, self.hits / self.ranks, 0.0), axis=-1)

    @cached_property
    def dcg(self) -> Values:
        return discount(np.where(self.relevant, self.grades, 0.0))


@dataclass(frozen=True, eq=False)
class Truths:
    """The truths of q queries, prepared once to grade the rankings of any number of runs."""

    grades: Sequence[Mapping[Any, float]]  # per query: document id → grade
    distinct: Sequence[Mapping[Any, float]]  # the same with each text once
    ideal: Values
    n_relevant: NDArray[np.int64]

    @classmethod
    def from_grades(cls, truths: Sequence[Mapping[Any, float]]) -> Truths:
        distinct = [count_once(truth) for truth in truths]
        relevant = [sorted((grade for grade in truth.values() if grade > 0), reverse=True) for truth in distinct]
        return cls(truths, distinct, *_pad(relevant, 0.0))

    def grade(self, rankings: Sequence[Sequence[Hashable] | NDArray[Any]]) -> GradedRankings:
        """Grade one ranking per query (distinct document ids, best first)."""
        grades, lengths = grade_matrix(rankings, self.grades)
        return self._build(grades, lengths, rankings)

    def grade_arrays(self, rankings: Sequence[NDArray[np.int64]]) -> GradedRankings:
        """Grade one ranking per query as `grade` does, for ids that are whole numbers: all are looked up together."""
        lengths = np.array([len(ranking) for ranking in rankings], np.int64)
        ids = np.concatenate([np.empty(0, np.int64), *rankings])
        queries = np.repeat(np.arange(len(rankings)), lengths)
        documents, keys, judged, marks = self._judged
        likely = np.flatnonzero(marks[ids % len(marks)])  # most ids have no judgment, and a search costs more than this
        places, matched = _find(documents, ids[likely])
        judged_ids = likely[matched]
        pairs, matched = _find(keys, queries[judged_ids] * len(documents) + places)
        places, rows = judged_ids[matched], queries[judged_ids[matched]]
        grades = np.full((len(rankings), max(lengths.max(initial=0), 1)), math.nan)
        grades[rows, places - (np.cumsum(lengths) - lengths)[rows]] = judged[pairs]
        return self._build(grades, lengths, rankings)

    def _build(
        self, grades: Values, lengths: NDArray[np.int64], rankings: Sequence[Sequence[Hashable] | NDArray[Any]]
    ) -> GradedRankings:
        """Return graded rankings; of several documents with one text, only the first keeps a grade above 0."""
        for row, ranking, truth in zip(grades, rankings, self.grades, strict=True):
            if isinstance(truth, SharedGrades):
                repeats = truth.find_repeats(ranking.tolist() if isinstance(ranking, np.ndarray) else ranking)
                row[repeats] = np.minimum(row[repeats], 0.0)
        return GradedRankings(grades, lengths, self.ideal, self.n_relevant, self.distinct)

    @cached_property
    def _judged(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Values, NDArray[np.bool_]]:
        """Return the rising judged ids that are whole numbers, keys and grades of judgments, and marks of remainders.

        The rising key of a judgment is query * number of ids + place of its id. A mark is set for the remainders that
        occur among judged ids. An id of another type is a missing document: no ranking of numbers holds it.
        """
        judgments = [
            (query, document, grade)
            for query, truth in enumerate(self.grades)
            for document, grade in truth.items()
            if isinstance(document, int)
        ]
        queries, ids, grades = zip(*judgments, strict=True) if judgments else ((), (), ())
        documents, places = np.unique(np.array(ids, np.int64), return_inverse=True)
        keys = np.array(queries, np.int64) * len(documents) + places
        order = np.argsort(keys)
        marks = np.zeros(MARKS, bool)
        marks[documents % MARKS] = True
        return documents, keys[order], np.array(grades, np.float64)[order], marks


def _find(rising: NDArray[np.int64], targets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions in `rising` of the `targets` that it contains, and the indices of these."""
    places = np.searchsorted(rising, targets)
    matched = np.flatnonzero(np.append(rising, -1)[places] == targets) if len(rising) else places[:0]
    return places[matched], matched


def grade_matrix(
    rankings: Sequence[Sequence[Hashable] | NDArray[Any]], truths: Sequence[Mapping[Any, float]]
) -> tuple[Values, NDArray[np.int64]]:
    """Return the grades of the ranked documents, (q, depth), and the length of each ranking, (q,).

    NaN stands for a document without judgment and, past a ranking's length, for no document. Ids may be anything
    hashable; an array of ids is looked up as Python values.
    """
    unjudged = math.nan
    rows = [
        list(map(truth.get, ranking.tolist() if isinstance(ranking, np.ndarray) else ranking, repeat(unjudged)))
        for ranking, truth in zip(rankings, truths, strict=True)
    ]
    return _pad(rows, unjudged)


def discount(gains: Values) -> Values:
    """Return running sums of gain / log2(rank + 1)."""
    return np.cumsum(gains / np.log2(np.arange(2.0, gains.shape[-1] + 2.0)), axis=-1)


def _pad(rows: Sequence[Sequence[float]], filler: float) -> tuple[Values, NDArray[np.int64]]:
    """Return rows of unequal length as a matrix of at least one column, and their lengths."""
    lengths = np.array([len(row) for row in rows], np.int64)
    matrix = np.full((len(rows), max(lengths.max(initial=0), 1)), filler)
    for row, values in zip(matrix, rows, strict=True):
        row[: len(values)] = values
    return matrix, lengths


def share(amount: Values, total: Values | NDArray[np.int64] | int) -> Values:
    """Return amount / total; 0 where `total` is 0."""
    return np.divide(amount, total, out=np.zeros(np.broadcast(amount, total).shape), where=np.greater(total, 0))
