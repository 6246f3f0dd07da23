"""The chance that an unjudged pair is relevant: a logistic model of its evidence, learnt from the judged pairs.

logit p = β · x + u_q, where x are the columns of `evidence` and u_q is how rich query q is. β and u are normal
beforehand (`prior`), so a few grades move them a little: with a column of each run the model learns whose finds are
good, and does not draw all runs together. What is uncertain of β and u is drawn with every filling, by the normal
approximation at the mode (Laplace; Gelman and others, Bayesian Data Analysis, third edition, 2013, chapters 4.1 and
16). Runs as evidence of relevance: Carterette and Allan, CIKM 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Values

ROUNDS = 15

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of β and u before any grade: means and spreads, in the order of `evidence.COLUMNS`."""

    means: tuple[float, ...]
    spreads: tuple[float, ...]
    run: tuple[float, float]
    """Mean and spread of the coefficient of each run's own column."""
    richness: float
    """The spread of u, which counts as `QUERIES_BEFORE` queries."""

    def of_columns(self, runs: int) -> tuple[Values, Values]:
        """The means and spreads of all columns, (7 + R,) each."""
        mean, spread = self.run
        return np.array([*self.means, *[mean] * runs]), np.array([*self.spreads, *[spread] * runs])


QUERIES_BEFORE = 4


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Draws of β and u."""

    beta: Floats
    """(f, draws)."""
    u: Floats
    """(Q, draws)."""

    def chances(self, features: Values, queries: NDArray[np.int64]) -> Floats:
        """(n, draws): the chance of each of n pairs, of `features` (n, f), to be relevant."""
        logits: Floats = features.astype(np.float32) @ self.beta
        logits += self.u[queries]
        np.negative(logits, out=logits)
        np.exp(np.minimum(logits, 80, out=logits), out=logits)
        logits += 1
        np.reciprocal(logits, out=logits)
        return logits


@dataclass(frozen=True, eq=False)
class Relevance:
    """What is known of β (f,) and u (Q,): the mode, and the spread about it."""

    beta: Values
    u: Values
    factor: Values
    """(f, f): β is drawn as beta + factor @ z."""
    slope: Values
    """(Q, f): how the mode of u moves as β does."""
    u_spread: Values
    """(Q,): the spread of u for a given β."""
    richness: float
    """The spread of u over the queries."""

    def chances(self, features: Values, queries: NDArray[np.int64]) -> Values:
        """(n,): the chance of each pair to be relevant, at the mode."""
        return _sigmoid(features @ self.beta + self.u[queries])

    def drawn(self, draws: int, rng: np.random.Generator) -> Drawn:
        moves = self.factor @ rng.standard_normal((len(self.beta), draws))
        u = self.u[:, None] + self.slope @ moves + self.u_spread[:, None] * rng.standard_normal((len(self.u), draws))
        return Drawn((self.beta[:, None] + moves).astype(np.float32), u.astype(np.float32))


def learn(pool: Pool, features: Values, relevant: Values, prior: Prior, *, rounds: int = ROUNDS) -> Relevance:
    """The model after the grades `relevant` (size,): 1 relevant, 0 not, NaN unjudged; `features` are (size, f).

    Newton's method on the mode, u eliminated query by query; the spread of u is raised or lowered to what its values
    show (a step of expectation and maximisation a round). f² · judged pairs a round.
    """
    judged = np.flatnonzero(~np.isnan(relevant))
    x, y, queries = features[judged], relevant[judged], pool.cells[judged, 0]
    before, spreads = prior.of_columns(pool.runs)
    precision = 1.0 / spreads**2
    beta, u, variance = before.copy(), np.zeros(pool.queries), prior.richness**2
    seen, starts = np.unique(queries, return_index=True)
    cross = np.zeros((pool.queries, len(before)))
    for _ in range(rounds):
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
            stated = QUERIES_BEFORE * prior.richness**2
            variance = float(((u**2 + 1 / curve)[seen].sum() + stated) / (len(seen) + QUERIES_BEFORE))
        if longest < 1e-3:
            break
    factor = np.linalg.inv(np.linalg.cholesky(inner)).T
    return Relevance(beta, u, factor, -cross / curve[:, None], 1 / np.sqrt(curve), variance**0.5)


def _sigmoid(logits: Values) -> Values:
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))
