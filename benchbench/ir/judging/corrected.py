"""Corrected verdicts: a model's grades everywhere, and a person's on a uniform sample of the queries as the correction.

Prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 2023), tuned as PPI++
(Angelopoulos, Duchi and Zrnic 2023): the model's value replaces the person's with a factor λ. The sample determines the
λ of least variance. A useless model gets λ near 0 and costs nothing; its bias is removed for any λ. The person judges
the whole pools of the sampled queries, so any measure is corrected, including nDCG with its ideal. The estimand is the
mean difference by the person's grades over the queries that the sample is drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.pool import JudgingError
from benchbench.ir.measures import Values
from benchbench.ir.measures.graded import share
from benchbench.ir.statistics.max_t import pair_runs
from benchbench.ir.statistics.resampling import SAME, Interval, check_values, draw_flips, require_settings

ALPHA = 0.05  # of the family
FEWEST_QUERIES = 10  # of a sample; with fewer its spread is too uncertain


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedPair:
    """Two runs, by their rows; differences are `first` − `second` by the person's grades."""

    first: int
    second: int
    difference: float
    interval: Interval  # for this pair alone
    simultaneous: Interval  # covers all pairs of the family at once
    p_adjusted: float
    significant: bool
    tuned: float  # λ
    effective: float  # judged queries that the person alone would need for this error


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedComparison:
    """A family of corrected pairs under one error rate."""

    pairs: tuple[CorrectedPair, ...]
    judged: int  # queries, by a person
    queries: int
    group: tuple[int, ...]  # the best run and the runs not significantly different from it

    @property
    def gain(self) -> float:
        """Return by how many judged queries the model's grades enlarge the sample, in the median over the pairs."""
        return float(np.median([pair.effective for pair in self.pairs])) - self.judged


def correct_by_queries(model: Values, person: Values, *, seed: int, resamples: int = 10_000) -> CorrectedComparison:
    """Return the corrected comparison of values by the model's grades and a person's, both (runs, queries).

    `person` is NaN for queries that were not sampled; the others are a uniform sample, judged without knowledge of the
    runs. A query without a value by the model in some run is left out. Raises JudgingError for arrays of different
    shape, or fewer than 10 sampled queries.
    """
    everywhere, sampled = _find_masks(model, person)
    n, n_unseen = int(sampled.sum()), int((everywhere & ~sampled).sum())
    require_settings(alpha=ALPHA, resamples=resamples)
    if n < FEWEST_QUERIES:
        raise JudgingError(f"A person has judged {n} queries; a correction needs at least {FEWEST_QUERIES}.")
    first, second = pair_runs(len(model), None)
    y = person[first][:, sampled] - person[second][:, sampled]
    predicted = model[first] - model[second]
    f, unseen = predicted[:, sampled], predicted[:, everywhere & ~sampled]
    tuned = _tune(y, f, unseen)
    rectified = y - tuned[:, None] * f
    difference, person_var = rectified.mean(axis=1), rectified.var(axis=1, ddof=1) / n
    model_var = np.zeros_like(person_var)
    terms = [(rectified - difference[:, None]) / n]
    if n_unseen > 1:
        difference = difference + tuned * unseen.mean(axis=1)
        model_var = tuned**2 * unseen.var(axis=1, ddof=1) / n_unseen
        terms.append(tuned[:, None] * (unseen - unseen.mean(axis=1, keepdims=True)) / n_unseen)
    error = np.sqrt(person_var + model_var)
    freedom = share((person_var + model_var) ** 2, person_var**2 / (n - 1) + model_var**2 / max(n_unseen - 1, 1))
    test = _MaxT.from_terms(np.concatenate(terms, axis=1), error, freedom, resamples=resamples, seed=seed)
    effective = share(y.var(axis=1, ddof=1), error**2)
    pairs = _build_pairs(test, first, second, difference, tuned, effective)
    return CorrectedComparison(
        pairs=pairs, judged=n, queries=int(everywhere.sum()), group=_find_best_group(pairs, len(model))
    )


@dataclass(frozen=True, eq=False)
class _MaxT:
    """The greatest |t| of the family under random signs of its centred terms (a wild bootstrap: Wu 1986).

    The terms are centred first: a biased model shifts the sampled and the other queries in opposite directions, so the
    signs of uncentred terms may not be flipped. Terms and error are the observed ones, so the greatest |t| is on the
    scale of a normal deviate. The degrees of freedom (Welch and Satterthwaite) convert an observed t, whose error is
    estimated from few queries, to this scale.
    """

    error: Values
    freedom: Values
    greatest: Values  # rising

    @classmethod
    def from_terms(cls, terms: Values, error: Values, freedom: Values, *, resamples: int, seed: int) -> _MaxT:
        scaled = terms / np.where(error > SAME, error, np.inf)[:, None]
        drawn = [
            np.abs(scaled @ signs.T).max(axis=0) for signs in draw_flips(terms.shape[1], resamples=resamples, seed=seed)
        ]
        return cls(error, freedom, np.sort(np.concatenate(drawn)))

    def adjust(self, difference: Values) -> Values:
        """Return the p-value of each difference within the family, (p,)."""
        from scipy.special import ndtri, stdtr

        varies = self.error > SAME
        t = np.abs(difference) / np.where(varies, self.error, np.inf)
        larger = len(self.greatest) - np.searchsorted(self.greatest, -ndtri(stdtr(self.freedom, -t)) - SAME)
        return np.where(varies, (1 + larger) / (1 + len(self.greatest)), 1.0)

    def compute_critical(self) -> Values:
        """Return the critical |t| of each pair within the family, (p,)."""
        from scipy.special import ndtr, stdtrit

        tolerated = math.floor(ALPHA * (1 + len(self.greatest)) + SAME) - 1
        z = float(self.greatest[-1 - tolerated])
        return np.asarray(-stdtrit(self.freedom, ndtr(-z)), np.float64)

    def compute_pairwise(self) -> Values:
        """Return the critical |t| of each pair by itself, (p,)."""
        from scipy.special import stdtrit

        return np.asarray(-stdtrit(self.freedom, ALPHA / 2), np.float64)


def _tune(y: Values, f: Values, unseen: Values) -> Values:
    """Return λ of each pair, (p,): covariance over (1 + n / N) · variance, within 0 and 1 (PPI++, section 6)."""
    if unseen.shape[1] < 2:
        return np.zeros(len(y))
    covariance = ((y - y.mean(axis=1, keepdims=True)) * (f - f.mean(axis=1, keepdims=True))).mean(axis=1)
    variance = np.concatenate([f, unseen], axis=1).var(axis=1, ddof=1)
    return np.clip(share(covariance, (1 + y.shape[1] / unseen.shape[1]) * variance), 0.0, 1.0)


def _build_pairs(
    test: _MaxT,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    difference: Values,
    tuned: Values,
    effective: Values,
) -> tuple[CorrectedPair, ...]:
    halves = [
        np.where(test.error > SAME, critical * test.error, 0.0)
        for critical in (test.compute_pairwise(), test.compute_critical())
    ]
    adjusted = test.adjust(difference)
    columns = (first, second, difference, *halves, adjusted, adjusted <= ALPHA + 1e-12, tuned, effective)
    return tuple(
        CorrectedPair(
            first=first_run,
            second=second_run,
            difference=middle,
            interval=Interval(middle - alone, middle + alone),
            simultaneous=Interval(middle - together, middle + together),
            p_adjusted=p,
            significant=significant,
            tuned=factor,
            effective=worth,
        )
        for first_run, second_run, middle, alone, together, p, significant, factor, worth in zip(
            *(column.tolist() for column in columns), strict=True
        )
    )


def _find_best_group(pairs: Sequence[CorrectedPair], runs: int) -> tuple[int, ...]:
    """Return the run with the greatest mean lead, and those that are not significantly worse than it."""
    ahead, differs = np.zeros((runs, runs)), np.zeros((runs, runs), bool)
    for pair in pairs:
        ahead[pair.first, pair.second], ahead[pair.second, pair.first] = pair.difference, -pair.difference
        differs[pair.first, pair.second] = differs[pair.second, pair.first] = pair.significant
    return tuple(np.flatnonzero(~differs[int(ahead.mean(axis=1).argmax())]).tolist())


def _find_masks(model: Values, person: Values) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the queries with a value by the model in every run, and of those with a person's value too."""
    if check_values(model).shape != check_values(person).shape:
        raise JudgingError(
            "Values by the model's grades and by the person's must be given for the same runs and queries."
        )
    everywhere = np.asarray(~np.isnan(model).any(axis=0), np.bool_)
    return everywhere, everywhere & ~np.isnan(person).any(axis=0)
