"""The single-step max-|t| test over joint sign flips: the |t| that a whole family of pairs reaches by chance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.statistics.resampling import SAME, Values, cut_blocks, draw_flips


@dataclass(frozen=True, slots=True)
class Family:
    """The pairs as arrays of the same length, and their differences."""

    n: int
    is_weighted: bool
    effective: float  # queries of equal weight that are as certain: n, or Kish's (Σw)² / Σw², Survey Sampling (1965)
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    wins: NDArray[np.intp]
    losses: NDArray[np.intp]
    difference: Values
    deviation: Values  # √(Σu²(d − d̄)² / (n − 1)): without weights the sd; 0 where the pair has no variance
    norm: Values  # √Σ(ud)²
    spread: Values  # √(Σu(d − d̄)² / (n − 1)): the sd of d over the demand
    skew: Values  # Σu²(d − d̄): 0, apart from rounding, without weights
    step: Values  # |d| of every query that differs, if they all have one; otherwise 0
    improved: Values  # share of the demand whose queries are won
    worsened: Values

    @classmethod
    def from_values(cls, values: Values, baseline: int | None, weights: Values | None = None) -> Family:
        """Return the pairs of `values` (runs, n). `weights` (n,) are scaled to the mean 1, see `scale_weights`.

        With weights u and d̄ = Σud / n, deviation / √n is the linearised standard error of the ratio estimator d̄
        (Cochran 1977, formula 6.13). Without weights u is 1.
        """
        runs, n = values.shape
        first, second = pair_runs(runs, baseline)
        u = np.ones(n) if weights is None else weights
        figures = np.empty((8, len(first)))
        counts = np.empty((2, len(first)), np.intp)
        for block in cut_blocks(len(first), n):
            d = values[first[block]] - values[second[block]]
            figures[:6, block] = _describe_differences(d, u)
            for row, sign in enumerate((1, -1)):
                exceeds = sign * d > SAME
                counts[row, block], figures[6 + row, block] = exceeds.sum(axis=1), (exceeds * u).sum(axis=1) / n
        return cls(n, weights is not None, n**2 / float(u @ u), first, second, counts[0], counts[1], *figures)

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Return whether some query differs."""
        return self.wins + self.losses > 0

    def yield_differences(self, rows: Values) -> Iterator[tuple[slice, Values]]:
        """Yield blocks of pairs, and their `first` − `second` in `rows` (runs, …), in a new array.

        A block has one first run and consecutive second runs, so rows are not copied for pairs.
        """
        starts = np.flatnonzero(np.diff(self.first, prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(self.first)]):
            yield slice(start, end), rows[self.first[start]] - rows[self.second[start] : self.second[end - 1] + 1]


def _describe_differences(d: Values, u: Values) -> tuple[Values, ...]:
    """Return difference, deviation, norm, spread, skew and step of each row of `d`, with weights `u`."""
    freedom = d.shape[1] - 1
    weighted = d * u
    difference = weighted.mean(axis=1)
    centred = d - difference[:, None]
    residuals = centred * u
    high, low = d.max(axis=1), d.min(axis=1)
    return (
        difference,
        np.where(high - low > SAME, np.sqrt((residuals * residuals).sum(axis=1) / freedom), 0.0),
        np.sqrt((weighted * weighted).sum(axis=1)),
        np.sqrt((residuals * centred).sum(axis=1) / freedom),
        residuals @ u,
        _find_step(d, np.maximum(high, -low)),
    )


def _find_step(d: Values, greatest: Values) -> Values:
    """Return the `greatest` |d| of each row if every other difference is 0 or has that size, otherwise 0."""
    missing = greatest**2 * (np.abs(d) > SAME).sum(axis=1) - np.einsum("ij,ij->i", d, d)
    return np.where((greatest > SAME) & (missing <= SAME * greatest), greatest, 0.0)


@dataclass(frozen=True, slots=True)
class FlipStatistics:
    """Statistics of the pairs that differ on some query, under random signs.

    The statistic is r = |Σd| / √Σd². Flipping signs does not change Σd², and t² = (n − 1) r² / (n − r²) rises with r.
    So the greatest r of a family gives its greatest |t|, without a variance per flip and pair.

    With weights the statistic is r = |Σud| / √Σ(ud)², from signs of each ud: give values that are multiplied by u.
    """

    n: int
    observed: Values  # r of each pair that differs
    greatest: Values  # of each pattern the greatest r of the family, in rising order
    effective: float  # `Family.effective`

    @classmethod
    def from_values(cls, values: Values, family: Family, *, resamples: int, seed: int) -> FlipStatistics:
        norm = np.where(family.differs, family.norm, np.inf)  # so that r is 0 where nothing differs
        observed = np.abs(family.difference) * family.n / norm
        greatest = []
        for signs in draw_flips(family.n, resamples=resamples, seed=seed):
            largest = np.zeros(len(signs))
            for pairs, r in family.yield_differences(values @ signs.T):
                np.abs(r, out=r)
                r /= norm[pairs, None]
                np.maximum(largest, r.max(axis=0), out=largest)
            greatest.append(largest)
        return cls(family.n, observed[family.differs], np.sort(np.concatenate(greatest)), family.effective)

    @property
    def p_family(self) -> Values:
        # Scores are discrete, so that ties are common; rounding must not decide them.
        smaller = np.searchsorted(self.greatest, self.observed - SAME)
        return (1 + len(self.greatest) - smaller) / (1 + len(self.greatest))

    def compute_critical(self, alpha: float) -> float | None:
        """Return the |t| above which, and only above which, p_family ≤ alpha; None if no |t| suffices.

        None also below 2 effective queries: one query has nearly all the demand, and its own spread is unknown.

        With weights, t = difference / standard error has this bound apart from `Family.skew`, see `significance`.
        """
        tolerated = math.floor(alpha * (1 + len(self.greatest)) + SAME) - 1
        if tolerated < 0 or not len(self.observed) or self.effective < 2:
            return None
        r = float(self.greatest[-1 - tolerated]) + SAME
        left = self.n - r * r * (self.n / self.effective)
        return r * math.sqrt((self.n - 1) / left) if left > 0 else None


def pair_runs(runs: int, baseline: int | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of both sides of every pair: of all, or of all with the baseline."""
    if baseline is None:
        first, second = np.triu_indices(runs, 1)
        return first, second
    arms = np.delete(np.arange(runs), baseline)
    return arms, np.full_like(arms, baseline)
