"""The chance that an unjudged pair is relevant: a logistic model of its evidence, learnt from the judged pairs.

logit p = β · x + u_q, where x are the columns of `evidence` and u_q is how rich query q is. β and u are normal
beforehand (`PRIOR`), so a few grades move them a little: with a column of each run the model learns whose finds are
good, and does not draw all runs together. What is uncertain of β and u is drawn with every filling, by the normal
approximation at the mode (Laplace; Gelman and others, Bayesian Data Analysis, third edition, 2013, chapters 4.1 and
16). Runs as evidence of relevance: Carterette and Allan, CIKM 2007.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.evidence import Features
from benchbench.ir.judging.fillings import Shape, compute_reach, compute_values
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Values

ROUNDS = 15
CELLS_AT_ONCE = 500_000  # cells × fillings in an array: as many as a processor's cache holds

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Prior:
    """Prior of β and u: means and spreads, in the order of `evidence.COLUMNS`."""

    means: tuple[float, ...]
    spreads: tuple[float, ...]
    run: tuple[float, float]  # mean and spread of the coefficient of each run's own column
    richness: float  # the spread of u, which counts as `QUERIES_BEFORE` queries


# Learnt from complete collections: `perf/prior.py` computes these figures from ADI, Cranfield and SciFact.
PRIOR = Prior(
    means=(-3.16, 2.12, 6.08, 4.25, -0.96, -0.99, 1.0),
    spreads=(3.0, 1.5, 4.61, 2.64, 2.0, 1.66, 0.5),
    run=(0.12, 1.0),
    richness=0.87,
)

# Of a relevant pair to reach a higher level: what runs rank high has higher grades. Wide: Cranfield alone shows it.
PRIOR_OF_LEVELS = Prior(
    means=(-1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    spreads=(2.0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.1),
    run=(0.0, 0.5),
    richness=0.5,
)
QUERIES_BEFORE = 4


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorDraws:
    """Draws of β and u."""

    beta: Floats  # (f, draws)
    u: Floats  # (Q, draws)

    def predict(self, features: Values, queries: NDArray[np.int64]) -> Floats:
        """Return the chance of each of n pairs, of `features` (n, f), to be relevant, (n, draws)."""
        logits: Floats = features.astype(np.float32) @ self.beta
        logits += self.u[queries]
        np.negative(logits, out=logits)
        np.exp(np.minimum(logits, 80, out=logits), out=logits)
        logits += 1
        np.reciprocal(logits, out=logits)
        return logits


@dataclass(frozen=True, eq=False)
class Relevance:
    """Posterior of β (f,) and u (Q,): the mode and the spread about it."""

    beta: Values
    u: Values
    factor: Values  # (f, f): β is drawn as beta + factor @ z
    slope: Values  # (Q, f): how the mode of u moves as β does
    u_spread: Values  # (Q,): the spread of u for a given β
    richness: float  # the spread of u over the queries

    def predict(self, features: Values, queries: NDArray[np.int64]) -> Values:
        """Return the chance of each pair to be relevant, at the mode, (n,)."""
        return _sigmoid(features @ self.beta + self.u[queries])

    def draw(self, draws: int, rng: np.random.Generator) -> PosteriorDraws:
        moves = self.factor @ rng.standard_normal((len(self.beta), draws))
        u = self.u[:, None] + self.slope @ moves + self.u_spread[:, None] * rng.standard_normal((len(self.u), draws))
        return PosteriorDraws((self.beta[:, None] + moves).astype(np.float32), u.astype(np.float32))


def learn(pool: Pool, features: Values, relevant: Values, prior: Prior) -> Relevance:
    """Return the model after the grades `relevant` (size,): 1 relevant, 0 not, NaN unjudged; `features` are (size, f).

    Newton's method on the mode, u eliminated query by query; the spread of u is raised or lowered to what its values
    show (a step of expectation and maximisation a round). f² · judged pairs a round.
    """
    judged = np.flatnonzero(~np.isnan(relevant))
    x, y, queries = features[judged], relevant[judged], pool.cells[judged, 0]
    mean, spread = prior.run
    before = np.array([*prior.means, *[mean] * pool.runs])
    precision = 1.0 / np.array([*prior.spreads, *[spread] * pool.runs]) ** 2
    beta, u, variance = before.copy(), np.zeros(pool.queries), prior.richness**2
    seen, starts = np.unique(queries, return_index=True)
    cross = np.zeros((pool.queries, len(before)))
    for _ in range(ROUNDS):
        p = _sigmoid(x @ beta + u[queries])
        w = p * (1 - p)
        by_u = np.bincount(queries, y - p, pool.queries) - u / variance
        by_beta = x.T @ (y - p) - precision * (beta - before)
        curve = np.bincount(queries, w, pool.queries) + 1 / variance
        if len(starts):
            cross[seen] = np.add.reduceat(x * w[:, None], starts)
        inner = (x.T * w) @ x + np.diag(precision) - cross.T @ (cross / curve[:, None])
        step = np.linalg.solve(inner, by_beta - cross.T @ (by_u / curve))
        u_step = (by_u - cross @ step) / curve
        longest = max(float(np.abs(step).max()), float(np.abs(u_step).max(initial=0.0)))
        shorter = min(1.0, 2.0 / longest) if longest else 1.0  # Newton's step may be too long far from the mode
        beta, u = beta + shorter * step, u + shorter * u_step
        if len(seen) > 1:
            prior_sum = QUERIES_BEFORE * prior.richness**2
            variance = float(((u**2 + 1 / curve)[seen].sum() + prior_sum) / (len(seen) + QUERIES_BEFORE))
        if longest < 1e-3:
            break
    factor = np.linalg.inv(np.linalg.cholesky(inner)).T
    return Relevance(beta, u, factor, -cross / curve[:, None], 1 / np.sqrt(curve), variance**0.5)


def learn_tails(pool: Pool, features: Values, grades: Values, levels: Sequence[float]) -> Values:
    """Return the chance that each pair, if relevant, reaches each level, (levels, size), from the grades (size,).

    Of a scale with two levels, 1 and then what a model like that of relevance learns from the relevant pairs.
    """
    tails = np.ones((len(levels), pool.size))
    for number, level in enumerate(levels[1:], start=1):
        reached = np.where(grades > 0, grades >= level, np.nan)
        model = learn(pool, features, reached, PRIOR_OF_LEVELS)
        tails[number] = np.minimum(tails[number - 1], model.predict(features, pool.cells[:, 0]))
    return tails


def _sigmoid(logits: Values) -> Values:
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))


class Drawing:
    """The values of each run and query under the drawn fillings.

    Every hole has one uniform number for each filling, drawn once. It is relevant if that number is below its chance.
    So fillings before and after a grade differ only by the effect of the grade, not by new random numbers.
    """

    def __init__(self, pool: Pool, features: Features, shape: Shape, outside: Values, *, draws: int, seed: int) -> None:
        """`outside` is (levels, Q) of `count_outside`; of `features` the values count at the time of a draw."""
        self._pool, self._features, self._shape, self._outside = pool, features, shape, outside
        self._seed, self._draws = seed, draws
        self._uniform = np.random.default_rng((seed, 18)).random((pool.size, draws), np.float32)
        self._posterior_draws: PosteriorDraws | None = None
        self._tails = np.ones((len(shape.levels), pool.size), np.float32)
        self.values = np.empty((draws, pool.runs, pool.queries))  # (draws, R, Q)

    def draw_all(self, grades: Values, model: Relevance, tails: Values) -> None:
        """Draw all queries by a model, and `tails` (levels, size): the chance that each pair, if relevant, reaches each
        level.

        β and u are drawn with equal luck too.
        """
        self._posterior_draws = model.draw(self._draws, np.random.default_rng((self._seed, 19)))
        self._tails = tails.astype(np.float32)
        for queries in self._query_blocks():
            self._draw(queries, grades)

    def draw_query(self, grades: Values, query: int) -> None:
        """Draw one query again after a grade of it, by the unchanged model."""
        self._draw(slice(query, query + 1), grades)

    def _draw(self, queries: slice, all_grades: Values) -> None:
        pool, levels = self._pool, self._shape.levels
        start, stop = pool.rows_of_queries[queries.start].start, pool.rows_of_queries[queries.stop - 1].stop
        cells = pool.cells[start:stop]
        grades = all_grades[tuple(cells.T)]
        open_ = np.isnan(grades)
        assert self._posterior_draws is not None
        holes = start + np.flatnonzero(open_)
        chances = self._posterior_draws.predict(self._features.values[holes], pool.cells[holes, 0])
        uniform = self._uniform[holes]
        local_cells = tuple((cells - [queries.start, 0]).T)
        reach = []
        for level, tail in zip(compute_reach(grades, levels), self._tails, strict=True):
            filled = np.repeat(level[:, None], self._draws, axis=1)
            filled[open_] = uniform < chances * tail[holes, None]
            matrix = np.zeros((queries.stop - queries.start, pool.has_document.shape[1], self._draws), bool)
            matrix[local_cells] = filled
            reach.append(matrix)
        self.values[:, :, queries] = self._compute_values(queries, reach).transpose(2, 1, 0)

    def _compute_values(self, queries: slice, reach: Sequence[NDArray[np.bool_]]) -> Values:
        """(queries, R, draws)."""
        return compute_values(
            self._pool.select_queries(queries), self._shape.select_queries(queries), reach, self._outside[:, queries]
        )

    def _query_blocks(self) -> Iterator[slice]:
        at_once = max(1, CELLS_AT_ONCE // (self._pool.has_document.shape[1] * self._draws))
        return (slice(s, min(s + at_once, self._pool.queries)) for s in range(0, self._pool.queries, at_once))
