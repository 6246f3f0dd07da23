"""Evidence of relevance from ranks, texts and a language model: columns of numbers for the pairs of a pool.

The columns, (size, 7 + R), are in this order:

- `constant`: 1.
- `ranks`: twice the mean over the runs of 1 / log2(rank + 1), which is 0 where a run does not rank the document.
- `top`, `relevant`, `other`: closeness of the document to others of the same query: to all of them, each weighing
  1 / its best rank; to those graded relevant; to those graded not relevant. Closeness to documents j of weights w is
  Σ w · cos / (1 + Σ w), with cosines of vectors less their mean over the query's documents. (Feedback from judged and
  from top documents as in Rocchio, The SMART Retrieval System, 1971, chapter 14.) A document does not count for itself.
- `any_relevant`: 1 where another document of the query is graded relevant.
- `judge`: log P(grade | relevant) / P(grade | not) of the language model's grade, counted on the pairs that people
  graded too. Each share begins as `SEEN_BEFORE` pairs of which the model grades as it grades all: no evidence.
- one for each run: 1 / log2(rank + 1).

A column without data is 0 and so gives no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.agreement import confusion
from benchbench.ir.judging.fillings import compute_reach
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Values

COLUMNS = ("constant", "ranks", "top", "relevant", "other", "any_relevant", "judge")
TOP, ANY_RELEVANT, JUDGE = (COLUMNS.index(name) for name in ("top", "any_relevant", "judge"))
AXES = 16  # principal axes of a query's documents that are kept: with all of them closeness is hardly another
SEEN_BEFORE = 8.0

Axes = NDArray[np.float16]


def compute_axes(pool: Pool, vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> Axes:
    """Return coordinates (size, AXES) whose inner products are the centred cosines of documents within their query.

    `rows` (size,) gives the row of `vectors` (n, d) with the vector of each pair's document. −1 means no vector, and
    coordinates of 0. This is the best approximation by AXES axes (Eckart and Young, Psychometrika 1936), in half
    precision. For w documents of a query it costs w² · d.
    """
    axes = np.zeros((pool.size, AXES), np.float16)
    for query_rows in pool.rows_of_queries:
        present = query_rows.start + np.flatnonzero(rows[query_rows] >= 0)
        if len(present) < 2:
            continue
        centred = vectors[rows[present]].astype(np.float64)
        centred -= centred.mean(axis=0)
        norms = np.linalg.norm(centred, axis=1, keepdims=True)
        unit = np.divide(centred, norms, out=np.zeros_like(centred), where=norms > 1e-6)
        squares, directions = np.linalg.eigh(unit @ unit.T)
        n_axes = min(AXES, len(present))
        axes[present, :n_axes] = (directions * np.sqrt(np.maximum(squares, 0.0)))[:, ::-1][:, :n_axes]
    return axes


class Features:
    """The columns of a pool after some grades: one more grade changes those of its query alone."""

    def __init__(self, pool: Pool, axes: Axes | None = None) -> None:
        """Prepare the columns. `axes`: of `compute_axes`, None without vectors. `inform` adds a model's grades."""
        ranks = pool.ranks[(slice(None), *pool.cells.T)]
        by_run = 1.0 / np.log2(ranks + 1.0)
        self._pool = pool
        self._model_grades: Values | None = None
        self._weights = np.where(pool.has_document, 1.0 / pool.best, 0.0)
        self._axes: Values | None = None
        if axes is not None:
            self._axes = np.zeros((*pool.has_document.shape, AXES))
            self._axes[pool.has_document] = axes
        self.values = np.zeros((pool.size, len(COLUMNS) + pool.runs))  # (size, 7 + R)
        self.values[:, 0] = 1.0
        self.values[:, 1] = by_run.mean(axis=0) * 2.0
        self.values[:, len(COLUMNS) :] = by_run.T

    def inform(self, model_grades: Values | None) -> None:
        """Replace the language model's grades (size,); they show when all queries are renewed."""
        self._model_grades = model_grades

    def measure_agreement(self, grades: Values) -> tuple[int, float | None]:
        """Return how many pairs people and the language model graded, and Cohen's kappa of these grades."""
        if self._model_grades is None:
            return 0, None
        compared = confusion(grades[tuple(self._pool.cells.T)], self._model_grades)
        return int(compared.counts.sum()), compared.kappa

    def renew_all(self, grades: Values) -> None:
        """Renew the columns of all queries after the grades (Q, width), NaN in holes. Costs size · AXES."""
        self.renew_queries(grades, slice(0, self._pool.queries))
        people = grades[tuple(self._pool.cells.T)]
        self.values[:, JUDGE] = 0.0 if self._model_grades is None else _log_ratios(self._model_grades, people)

    def renew_queries(self, grades: Values, queries: slice) -> None:
        """Renew the columns of these queries' texts after a grade of them."""
        start, stop = (self._pool.rows_of_queries[query] for query in (queries.start, queries.stop - 1))
        rows, cells, some = slice(start.start, stop.stop), self._pool.has_document[queries], grades[queries]
        relevant = (some > 0).astype(np.float64)
        self.values[rows, ANY_RELEVANT] = (relevant.sum(axis=1, keepdims=True) - relevant > 0)[cells]
        if self._axes is not None:
            weights = np.stack([self._weights[queries], relevant, some <= 0], axis=2)
            self.values[rows, TOP:ANY_RELEVANT] = _closeness(self._axes[queries], weights)[cells]

    def inform_tails(self, tails: Values, grades: Values, levels: Sequence[float]) -> Values:
        """Return the chances `tails` (levels, size) of relevant pairs to reach each level, by the model's grades too.

        It is the share of relevant pairs of the same grade by the model that reach it; `tails` count as `SEEN_BEFORE`.
        """
        if self._model_grades is None:
            return tails
        people, informed = grades[tuple(self._pool.cells.T)], tails.copy()
        for grade in np.unique(self._model_grades[~np.isnan(self._model_grades)]):
            alike = self._model_grades == grade
            relevant = people[alike & (people > 0)]
            reach = compute_reach(relevant, levels).sum(axis=1, keepdims=True)
            informed[:, alike] = (reach + SEEN_BEFORE * tails[:, alike]) / (len(relevant) + SEEN_BEFORE)
        return informed


def _closeness(axes: Values, weights: Values) -> Values:
    """Return the closeness of each query's n documents to the others under m weightings (Q, n, m), (Q, n, m)."""
    sums = axes @ (axes.swapaxes(1, 2) @ weights) - np.square(axes).sum(axis=2, keepdims=True) * weights
    return np.asarray(sums / (1.0 + weights.sum(axis=1, keepdims=True) - weights), np.float64)


def _log_ratios(model: Values, people: Values) -> Values:
    """Return the log ratio of each of the model's grades, (size,), by pairs that people graded too; 0 without one."""
    result = np.zeros(len(model))
    graded = ~np.isnan(model)
    both = graded & ~np.isnan(people)
    relevant, irrelevant = model[both & (people > 0)], model[both & (people <= 0)]
    for grade in np.unique(model[graded]):
        before = SEEN_BEFORE * float((model[graded] == grade).mean())
        shares = [((kind == grade).sum() + before) / (len(kind) + SEEN_BEFORE) for kind in (relevant, irrelevant)]
        result[model == grade] = np.log(shares[0] / shares[1])
    return result
