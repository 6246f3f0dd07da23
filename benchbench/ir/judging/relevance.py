"""The chance that an unjudged pair is relevant: a logistic model of ranks, learnt from the pairs that are judged.

logit p = β · x + u_q, where x holds for each run 1 / log2(rank + 1) (0 where it does not rank the document), their
mean, and 1; u_q is how rich query q is. β and u are normal beforehand, so a few grades move them a little: with
features of each run the model learns whose finds are good, and does not draw all runs together. What is uncertain of β
and u is drawn with every filling, by the normal approximation at the mode (Laplace; Gelman and others, Bayesian Data
Analysis, third edition, 2013, chapters 4.1 and 16). Runs as evidence of relevance: Carterette and Allan, CIKM 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Values

BEFORE = -2.0  # the mean of the constant beforehand: a pooled document is relevant with about 12 %
CONSTANT, SHARED, OWN = 2.0, 2.0, 1.0  # spreads beforehand: of the constant, of the mean over runs, of each run
RICHNESS = 1.0  # the spread of u beforehand; then learnt
ROUNDS = 15


@dataclass(frozen=True, eq=False)
class Relevance:
    """What is known of β (f,) and u (Q,): the mode, and the spread about it."""

    features: Values
    """(size, f), of every pair of the pool."""
    queries: NDArray[np.int64]
    """(size,): the query of each pair."""
    beta: Values
    u: Values
    factor: Values
    """(f, f): β is drawn as beta + factor @ z."""
    slope: Values
    """(Q, f): how the mode of u moves as β does."""
    u_spread: Values
    """(Q,): the spread of u for a given β."""

    def chances(self) -> Values:
        """(size,): the chance that each pair is relevant, at the mode."""
        return _sigmoid(self.features @ self.beta + self.u[self.queries])

    def drawn_chances(self, draws: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """(size, draws): the chance of each pair for drawn β and u."""
        moves = self.factor @ rng.standard_normal((len(self.beta), draws))
        u = self.u[:, None] + self.slope @ moves + self.u_spread[:, None] * rng.standard_normal((len(self.u), draws))
        logits = self.features.astype(np.float32) @ (self.beta[:, None] + moves).astype(np.float32)
        logits += u.astype(np.float32)[self.queries]
        np.negative(logits, out=logits)
        np.exp(np.minimum(logits, 80, out=logits), out=logits)
        logits += 1
        return np.reciprocal(logits, out=logits)


def features_of(pool: Pool) -> Values:
    """(size, runs + 2): of each pair what its ranks say."""
    ranks = pool.ranks[(slice(None), *pool.cells.T)]
    by_run = 1.0 / np.log2(ranks + 1.0)
    return np.column_stack([np.ones(pool.size), by_run.mean(axis=0) * 2.0, by_run.T])


def learn(pool: Pool, features: Values, relevant: Values, *, rounds: int = ROUNDS) -> Relevance:
    """The model after the grades `relevant` (size,): 1 relevant, 0 not, NaN unjudged.

    Newton's method on the mode, u eliminated query by query; the spread of u is raised or lowered to what its values
    show (a step of expectation and maximisation a round). f² · judged pairs a round.
    """
    judged = np.flatnonzero(~np.isnan(relevant))
    x, y, queries = features[judged], relevant[judged], pool.cells[judged, 0]
    size = features.shape[1]
    prior = np.concatenate([[BEFORE], np.zeros(size - 1)])
    precision = 1.0 / np.concatenate([[CONSTANT], [SHARED], np.full(size - 2, OWN)]) ** 2
    beta, u, variance = prior.copy(), np.zeros(pool.queries), RICHNESS**2
    seen = np.bincount(queries, minlength=pool.queries) > 0
    for _ in range(rounds):
        p = _sigmoid(x @ beta + u[queries])
        w = p * (1 - p)
        by_u = np.bincount(queries, y - p, pool.queries) - u / variance
        by_beta = x.T @ (y - p) - precision * (beta - prior)
        curve = np.bincount(queries, w, pool.queries) + 1 / variance
        cross = np.stack([np.bincount(queries, w * column, pool.queries) for column in x.T], axis=1)
        inner = (x.T * w) @ x + np.diag(precision) - cross.T @ (cross / curve[:, None])
        step = np.linalg.solve(inner, by_beta - cross.T @ (by_u / curve))
        u_step = (by_u - cross @ step) / curve
        longest = max(float(np.abs(step).max()), float(np.abs(u_step).max(initial=0.0)))
        shorter = min(1.0, 2.0 / longest) if longest else 1.0  # Newton's step may be too long far from the mode
        beta, u = beta + shorter * step, u + shorter * u_step
        if seen.sum() > 1:  # the prior counts as four queries of the spread stated beforehand
            variance = float(((u**2 + 1 / curve)[seen].sum() + 4 * RICHNESS**2) / (seen.sum() + 4))
        if longest < 1e-3:
            break
    factor = np.linalg.inv(np.linalg.cholesky(inner)).T
    return Relevance(features, pool.cells[:, 0], beta, u, factor, -cross / curve[:, None], 1 / np.sqrt(curve))


def _sigmoid(logits: Values) -> Values:
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))
