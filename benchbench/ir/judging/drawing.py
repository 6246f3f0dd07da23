"""Drawn fillings of a pool, kept from grade to grade, so that a new grade redraws its own query alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.evidence import Features
from benchbench.ir.judging.fillings import Shape, reached, values_of
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.relevance import Drawn, Relevance
from benchbench.ir.measures import Values

CELLS_AT_ONCE = 4_000_000  # cells × fillings in an array


class Drawing:
    """The values of each run and query under the drawn fillings.

    Every hole has one uniform number for each filling, drawn once: it is relevant where that is below its chance. So
    fillings before and after a grade differ by what the grade tells, and by no new luck.
    """

    def __init__(self, pool: Pool, features: Features, shape: Shape, outside: Values, *, draws: int, seed: int) -> None:
        """`outside` is (levels, Q) of `fillings.counted`; of `features` the values count at the time of a draw."""
        self._pool, self._features, self._shape, self._outside = pool, features, shape, outside
        self._seed, self._draws = seed, draws
        self._uniform = np.random.default_rng((seed, 18)).random((pool.size, draws), np.float32)
        self._drawn: Drawn | None = None
        self._tails = np.ones((len(shape.levels), pool.size), np.float32)
        self.values = np.empty((draws, pool.runs, pool.queries))
        """(draws, R, Q)."""

    def all(self, grades: Values, model: Relevance, tails: Values) -> None:
        """Draw all queries by a model, and `tails` (levels, size): the chance that each pair, if relevant, reaches each
        level.

        β and u are drawn with equal luck too.
        """
        self._drawn = model.drawn(self._draws, np.random.default_rng((self._seed, 19)))
        self._tails = tails.astype(np.float32)
        for part in self._parts():
            self._draw(part, grades)

    def query(self, grades: Values, query: int) -> None:
        """Draw one query again after a grade of it, by the model as it was."""
        self._draw(slice(query, query + 1), grades)

    def _draw(self, part: slice, all_grades: Values) -> None:
        pool, levels = self._pool, self._shape.levels
        start, stop = pool.rows_of_queries[part.start].start, pool.rows_of_queries[part.stop - 1].stop
        cells = pool.cells[start:stop]
        grades = all_grades[tuple(cells.T)]
        open_ = np.isnan(grades)
        assert self._drawn is not None
        holes = start + np.flatnonzero(open_)
        chances = self._drawn.chances(self._features.values[holes], pool.cells[holes, 0])
        uniform = self._uniform[holes]
        places = tuple((cells - [part.start, 0]).T)
        reach = []
        for level, tail in zip(reached(grades, levels), self._tails, strict=True):
            filled = np.repeat(level[:, None], self._draws, axis=1)
            filled[open_] = uniform < chances * tail[holes, None]
            whole = np.zeros((part.stop - part.start, pool.there.shape[1], self._draws), bool)
            whole[places] = filled
            reach.append(whole)
        self.values[:, :, part] = self._valued(part, reach).transpose(2, 1, 0)

    def _valued(self, part: slice, reach: Sequence[NDArray[np.bool_]]) -> Values:
        """(queries, R, draws)."""
        return values_of(self._pool.only(part), self._shape.only(part), reach, self._outside[:, part])

    def _parts(self) -> Iterator[slice]:
        at_once = max(1, CELLS_AT_ONCE // (self._pool.there.shape[1] * self._draws))
        return (slice(s, min(s + at_once, self._pool.queries)) for s in range(0, self._pool.queries, at_once))
