"""Mixtures of Gaussians: how many there are, and which points belong to which."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_COMPONENTS = 50  # as the paper's code has them
PATIENCE = 5  # counts in a row that are no better, after which no greater one is tried
FLOOR = 0.1  # of the mean variance: what is added to each


def mixture_members(points: NDArray[np.float64], *, threshold: float, seed: int) -> list[NDArray[np.int64]]:
    """Return the rows of `points` (n, r) that belong to each component of their mixture, ascending.

    A row belongs to each component whose posterior probability reaches `threshold`, and to its most probable one, so
    that each row belongs to one at least. The number of components is that of least BIC (Schwarz, 1978), from 1 to
    MOST_COMPONENTS, at most half as many as there are rows; the search ends where PATIENCE counts bring none less.

    Covariances are diagonal: 2r + 1 numbers a component, where full ones have r(r + 3)/2 + 1. To each variance FLOOR
    times the mean variance is added; else components shrink onto single rows, each as likely as one likes. One fit
    takes O(n·k·r) time and O(n·k) memory.
    """
    if len(points) < 2 or not points.var(axis=0).any():
        return [np.arange(len(points))] if len(points) else []
    probable: NDArray[np.float64] = _likeliest(points, seed).predict_proba(points)
    belongs = probable >= threshold
    belongs[np.arange(len(points)), probable.argmax(axis=1)] = True
    return [np.flatnonzero(column) for column in belongs.T if column.any()]


def _likeliest(points: NDArray[np.float64], seed: int) -> Any:
    """The mixture of least BIC; of equal ones that of fewest components."""
    floor = FLOOR * float(points.var(axis=0).mean())
    best, least, since = None, np.inf, 0
    for count in range(1, min(MOST_COMPONENTS, len(points) // 2) + 1):
        mixture = _fit(points, count, floor, seed)
        if (bic := float(mixture.bic(points))) < least:
            best, least, since = mixture, bic, 0
        elif (since := since + 1) == PATIENCE:
            break
    return best


def _fit(points: NDArray[np.float64], count: int, floor: float, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that was broken off has its BIC too
        return GaussianMixture(count, covariance_type="diag", reg_covar=floor, random_state=seed).fit(points)
