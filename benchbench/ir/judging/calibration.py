"""Calibration of a model as a judge: its grades against a person's on a uniform sample of pairs.

The figures hold only for the pool from which the pairs were drawn, for this prompt and this model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.agreement import Alpha, Confusion, alpha, confusion
from benchbench.ir.judging.pool import JudgingError
from benchbench.ir.measures import Values
from benchbench.ir.statistics.resampling import ALPHA, Interval, bootstrap_means, percentile_interval

MIN_PAIRS, MAX_PAIRS = 30, 500  # pairs of a calibration sample


@dataclass(frozen=True, slots=True)
class Bias:
    """The model's grades of the items to which the person gave `grade`: their mean less it, with an interval."""

    grade: float
    items: int
    mean: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A model's grades against a person's of the same sampled pairs."""

    alpha: Alpha
    confusion: Confusion  # rows are the person's grades, columns the model's
    bias: tuple[Bias, ...]  # one for each grade of the scale
    overall: Bias  # of all items; `grade` is the person's mean


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """Effect on the runs of replacing a person's grades by the model's.

    `tau` is Kendall's τ-b between the orders of the runs by mean; None for fewer than 2 runs, or if all means by
    either are equal. `values` is the mean absolute difference of a run's value of a query, `rise` the mean difference.
    """

    tau: float | None
    values: float
    rise: float
    queries: int


def calibrate(person: Sequence[float], model: Sequence[float], scale: Sequence[float], *, seed: int) -> Calibration:
    """Return the calibration from the grades of a person and of the model, item by item.

    Raises JudgingError for different numbers of grades, no grades, or a grade outside the scale.
    """
    if len(person) != len(model) or not person:
        raise JudgingError("A calibration needs the same pairs judged by a person and by the model, at least one.")
    both = np.array([person, model], np.float64)
    differences = both[1] - both[0]
    return Calibration(
        alpha=alpha(both, seed=seed),
        confusion=confusion(both[0], both[1], tuple(scale)),
        bias=tuple(_bias(grade, differences[both[0] == grade], seed) for grade in sorted(map(float, scale))),
        overall=_bias(float(both[0].mean()), differences, seed),
    )


def order_effect(person: Values, model: Values) -> OrderEffect:
    """Return the effect on runs from values (runs, queries) by a person's and the model's grades of the same documents.

    Only queries in which every value is present count. Raises JudgingError if no query has all values.
    """
    if person.shape != model.shape or person.ndim != 2:
        raise JudgingError(
            "Values by the person's and by the model's grades must be given for the same runs and queries."
        )
    both = ~(np.isnan(person).any(axis=0) | np.isnan(model).any(axis=0))
    if not both.any():
        raise JudgingError("No query has values by the grades of a person and of the model.")
    differences = model[:, both] - person[:, both]
    return OrderEffect(
        tau=_kendall(person[:, both].mean(axis=1), model[:, both].mean(axis=1)),
        values=float(np.abs(differences).mean()),
        rise=float(differences.mean()),
        queries=int(both.sum()),
    )


def _kendall(first: Values, second: Values) -> float | None:
    """Return Kendall's τ-b of two lists of figures (n,); None if either is all ties."""
    signs: list[NDArray[np.int8]] = []
    for figures in (first, second):
        differences = figures[:, None] - figures[None, :]
        signs.append((np.sign(differences) * (np.abs(differences) > 1e-12)).astype(np.int8))
    pairs = np.triu_indices(len(first), 1)
    x, y = (sign[pairs].astype(np.float64) for sign in signs)
    scale = float((x * x).sum() * (y * y).sum()) ** 0.5
    return float((x * y).sum()) / scale if scale else None


def _bias(grade: float, differences: Values, seed: int) -> Bias:
    items = len(differences)
    if not items:
        return Bias(grade, 0, None, None)
    mean = float(differences.mean())
    if items < MIN_PAIRS:
        return Bias(grade, items, mean, None)
    drawn = bootstrap_means(differences[None], resamples=2_000, seed=seed)
    return Bias(grade, items, mean, Interval(*percentile_interval(drawn, ALPHA)[0].tolist()))
