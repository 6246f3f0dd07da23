"""The pool of a judging round: the documents that its runs rank, query by query, with their ranks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Values


class JudgingError(BenchbenchError):
    """A question about judgments cannot be answered from the given data."""

    code = "judging"


class Item(NamedTuple):
    """A pair to judge: a query, by its place among the queries, and a document's id."""

    query: int
    document: Hashable


@dataclass(frozen=True, eq=False)
class Pool:
    """The distinct (query, document) pairs of R rankings of each of Q queries.

    Each query has a row of `width` cells, one a document, those of the best rank first; a row that has fewer documents
    ends in empty cells. So a pair is a cell (query, column), and arrays over pairs are (Q, width).
    """

    # Per query, the ids in the order of the cells: by best rank, then by how many runs have it, then as met.
    documents: tuple[tuple[Hashable, ...], ...]
    ranks: Values  # (R, Q, width): the rank, from 1, infinite where the run does not rank the document within `depth`
    # (Q,): whether every run has a ranking of the query; differences are of these queries alone.
    answered: NDArray[np.bool_]
    depth: int | None  # the last rank that is looked at; None for whole rankings

    @classmethod
    def from_rankings(
        cls, rankings: Sequence[Sequence[Sequence[Hashable] | None]], *, depth: int | None = None
    ) -> Pool:
        """Return the pool of `rankings[run][query]`: distinct ids, best first; None if the run failed on the query.

        A depth no less than the measure's cutoff makes verdicts exact; documents below it stay as they are judged.
        Raises JudgingError for no runs, or runs of different numbers of queries.
        """
        if not rankings or len({len(run) for run in rankings}) != 1:
            raise JudgingError("A pool needs at least one run, and each run a ranking, or None, for every query.")
        by_query = [[(ranking or ())[:depth] for ranking in query] for query in zip(*rankings, strict=True)]
        documents = tuple(_order_documents(query) for query in by_query)
        width = max((len(ids) for ids in documents), default=0)
        ranks = np.full((len(rankings), len(documents), max(width, 1)), np.inf)
        for query, (ids, lists) in enumerate(zip(documents, by_query, strict=True)):
            columns = {document: column for column, document in enumerate(ids)}
            for run, ranking in enumerate(lists):
                ranks[run, query, [columns[document] for document in ranking]] = np.arange(1.0, len(ranking) + 1)
        answered = np.array([all(run[query] is not None for run in rankings) for query in range(len(documents))], bool)
        return cls(documents, ranks, answered, depth)

    @property
    def runs(self) -> int:
        return len(self.ranks)

    @property
    def queries(self) -> int:
        return len(self.documents)

    def select_queries(self, queries: slice) -> Pool:
        """Return the pool of some queries, its rows as wide as here."""
        return Pool(self.documents[queries], self.ranks[:, queries], self.answered[queries], self.depth)

    @cached_property
    def has_document(self) -> NDArray[np.bool_]:
        """Return whether each cell holds a document, (Q, width)."""
        return np.asarray(np.isfinite(self.ranks).any(axis=0), np.bool_)

    @cached_property
    def size(self) -> int:
        """Return the number of pairs."""
        return int(self.has_document.sum())

    @cached_property
    def best(self) -> Values:
        """Return the best rank over the runs, (Q, width); infinite in an empty cell."""
        return np.asarray(self.ranks.min(axis=0), np.float64)

    @cached_property
    def rows_of_queries(self) -> list[slice]:
        """Return the numbers of the pairs of each query."""
        return [slice(start, stop) for start, stop in pairwise([0, *np.cumsum(self.has_document.sum(axis=1)).tolist()])]

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Return the query and the column of each pair, (size, 2), query by query. A pair's number is its row here."""
        return np.argwhere(self.has_document)

    @cached_property
    def numbers(self) -> dict[Item, int]:
        """Return the number of each pair."""
        return {self.get_item(number): number for number in range(self.size)}

    def get_item(self, number: int) -> Item:
        query, column = self.cells[number].tolist()
        return Item(query, self.documents[query][column])

    def find_cell(self, item: Item) -> tuple[int, int]:
        """Return the cell of a pair. Raises JudgingError where it is not in the pool."""
        if item not in self.numbers:
            raise JudgingError(f"Document {item.document!r} is not in the pool of query {item.query}.")
        query, column = self.cells[self.numbers[item]].tolist()
        return query, column

    def get_grades(self, truths: Sequence[Mapping[Any, float]]) -> Values:
        """Return each pair's grade in `truths[query]` (document id → grade), (Q, width); NaN for a hole or no pair."""
        self.require_truths(truths)
        grades = np.full(self.has_document.shape, np.nan)
        for row, ids, truth in zip(grades, self.documents, truths, strict=True):
            if truth:
                row[: len(ids)] = [truth.get(document, np.nan) for document in ids]
        return grades

    def list_outside(self, truths: Sequence[Mapping[Hashable, float]]) -> list[list[float]]:
        """Return the falling grades above 0 of each query's judged documents outside the pool."""
        self.require_truths(truths)
        pooled = [set(ids) for ids in self.documents]
        return [
            sorted((grade for document, grade in truth.items() if grade > 0 and document not in ids), reverse=True)
            for ids, truth in zip(pooled, truths, strict=True)
        ]

    def require_truths(self, truths: Sequence[Mapping[Hashable, float]]) -> None:
        if len(truths) != self.queries:
            raise JudgingError(f"The pool has {self.queries} queries, but truths are given for {len(truths)}.")


def _order_documents(rankings: Sequence[Sequence[Hashable]]) -> tuple[Hashable, ...]:
    """Return the distinct documents of one query's rankings: by best rank, then most runs, then as met."""
    keys: dict[Hashable, list[int]] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking, 1):
            key = keys.setdefault(document, [rank, 0])
            key[0] = min(key[0], rank)
            key[1] -= 1
    return tuple(sorted(keys, key=lambda document: keys[document]))
