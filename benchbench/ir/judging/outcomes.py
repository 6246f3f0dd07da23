"""Outcomes of a comparison under many fillings: who is significantly better, and which runs are the best group.

The rule is that of `statistics`: |t| of a pair's per-query differences against the critical value of its family. The
critical value hangs on how the runs' values lie together and hardly on single grades; it is taken once, of the values
that are expected. With every hole filled the outcomes are those of `statistics.compare` with the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.measures import Values
from benchbench.ir.statistics.max_t import Family, Flipped
from benchbench.ir.statistics.resampling import SAME

AT_ONCE = 20  # fillings whose centred values are in memory together: as many as a processor's cache holds


def critical_value(expected: Values, baseline: int | None, *, alpha: float, resamples: int, seed: int) -> float:
    """What |t| has to exceed, of the expected values (R, Q); infinite where nothing can be significant."""
    family = Family.of(expected, baseline)
    critical = Flipped.of(expected, family, resamples=resamples, seed=seed).critical(alpha)
    return np.inf if critical is None else critical


@dataclass(frozen=True, eq=False)
class Outcomes:
    """For m fillings and p pairs of runs."""

    first: NDArray[np.intp]
    """(p,): rows of the runs, as in `statistics.compare`; with a baseline it is every `second`."""
    second: NDArray[np.intp]
    means: Values
    """(m, R)."""
    differences: Values
    """(m, p): of means, first − second."""
    errors: Values
    """(m, p): the standard errors of the differences; 0 where a pair has no variance."""
    critical: float
    """What |t| has to exceed; infinite where nothing can be significant."""

    @classmethod
    def of(cls, values: Values, pairs: tuple[NDArray[np.intp], NDArray[np.intp]], critical: float) -> Outcomes:
        """Of `values` (m, R, Q) without NaN, Q ≥ 2, `pairs` of `max_t.family_of` and a `critical_value`."""
        means = values.mean(axis=2)
        products = np.empty((*values.shape[:2], values.shape[1]))
        for start in range(0, len(values), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            centred = values[part] - means[part, :, None]
            np.matmul(centred, np.swapaxes(centred, 1, 2), out=products[part])
        products /= values.shape[2] - 1
        own = np.diagonal(products, axis1=1, axis2=2)
        first, second = pairs
        variance = own[:, first] + own[:, second] - 2 * products[:, first, second]
        errors = np.sqrt(np.where(variance > SAME**2, variance, 0.0) / values.shape[2])
        return cls(first, second, means, means[:, first] - means[:, second], errors, critical)

    @property
    def signs(self) -> NDArray[np.int8]:
        """(m, p): 1 where the first is significantly better, −1 where the second is, 0 where neither."""
        bar = self.critical * np.where(self.errors > 0, self.errors, np.inf)
        return (np.sign(self.differences) * (np.abs(self.differences) > bar)).astype(np.int8)

    def groups(self) -> NDArray[np.bool_]:
        """(m, R): the runs that cannot be told from the one of the greatest mean, itself among them."""
        m, runs = self.means.shape
        told = np.zeros((m, runs, runs), bool)
        told[:, self.first, self.second] = told[:, self.second, self.first] = self.signs != 0
        result: NDArray[np.bool_] = ~told[np.arange(m), self.means.argmax(axis=1)]
        return result


def likeliest_of(signs: NDArray[np.int8]) -> tuple[NDArray[np.int8], Values]:
    """(p,) each: the outcome that most fillings have, and their share; of equally many, none is better."""
    shares = np.stack([(signs == outcome).mean(axis=0) for outcome in (0, 1, -1)])
    return np.array([0, 1, -1], np.int8)[shares.argmax(axis=0)], shares.max(axis=0)


def settled_together(agreeing: NDArray[np.bool_], shares: Values, confidence: float) -> NDArray[np.bool_]:
    """Which pairs are settled together, from (m, p) whether a filling has each pair's likeliest outcome."""
    order = np.argsort(-shares, kind="stable")
    all_agree = np.logical_and.accumulate(agreeing[:, order], axis=1).mean(axis=0)
    settled = np.zeros(len(order), bool)
    settled[order] = all_agree >= confidence
    return settled
