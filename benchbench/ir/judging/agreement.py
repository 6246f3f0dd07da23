"""Agreement of judges: kappa of two, Krippendorff's alpha of all, confusions and shifts.

Grades are a matrix (judges, items), NaN if a judge did not grade an item. An item with only one grade shows no
agreement and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.pool import JudgingError
from benchbench.ir.measures import Values
from benchbench.ir.statistics.resampling import ALPHA, Interval, percentile_interval

MIN_SHARED = 30  # items: with fewer, an interval is too wide to act on
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class Alpha:
    """Krippendorff's alpha for ordinal grades, of `shared` items that at least two judges graded.

    1 is perfect, 0 is chance; None if all shared grades are equal, since nothing could have differed.
    `interval` is a percentile bootstrap over the items; None under 30 shared items.
    """

    value: float | None
    interval: Interval | None
    shared: int


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """The grades of two judges: `counts[i, j]` items have `scale[i]` from the first and `scale[j]` from the second."""

    scale: tuple[float, ...]
    counts: NDArray[np.int64]
    # Cohen's kappa, unweighted; None where both gave one and the same grade throughout, or share nothing.
    kappa: float | None

    @property
    def shared(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class Shift:
    """Mean difference of a judge's grades from the others' on the same `items`; None without any."""

    mean: float | None
    items: int


def alpha(grades: Values, *, seed: int, resamples: int = RESAMPLES) -> Alpha:
    """Return the ordinal alpha of `grades` (judges, items), with its interval.

    Krippendorff, Content Analysis (2004), chapter 11: 1 − observed / expected disagreement, the distance of two grades
    being the squared number of grades between them, half of the two themselves counted.
    """
    counts = _count_values(grades)
    value = _alphas(counts.sum(axis=0)[None], _coincidences(counts).sum(axis=0)[None]).item() if len(counts) else np.nan
    if np.isnan(value) or len(counts) < MIN_SHARED:
        return Alpha(None if np.isnan(value) else value, None, len(counts))
    ends = percentile_interval(_bootstrap_alphas(counts, seed=seed, resamples=resamples)[None], ALPHA)[0].tolist()
    return Alpha(value, Interval(*ends), len(counts))


def _count_values(grades: Values) -> NDArray[np.int64]:
    """Return how often each item graded by two judges has each grade, (shared items, distinct grades)."""
    array = _check_grades(grades)
    scale = np.unique(array[~np.isnan(array)])
    counts: NDArray[np.int64] = (array.T[:, :, None] == scale).sum(axis=1, dtype=np.int64)
    return np.asarray(counts[counts.sum(axis=1) > 1], np.int64)


def _alphas(totals: Values, coincidences: Values) -> Values:
    """Return the ordinal alpha of b samples: totals (b, v), coincidences (b, v, v) → (b,); NaN where undefined."""
    up_to = np.cumsum(totals, axis=-1) - totals / 2  # the middle of each grade among all grades, in order
    distances = (up_to[:, :, None] - up_to[:, None, :]) ** 2
    n = totals.sum(axis=-1)
    expected = (totals[:, :, None] * totals[:, None, :] * distances).sum(axis=(1, 2))
    observed = (coincidences * distances).sum(axis=(1, 2))
    ratio: Values = np.divide((n - 1) * observed, expected, out=np.full(len(n), np.nan), where=expected > 0)
    return 1 - ratio


def confusion(first: Values, second: Values, scale: tuple[float, ...] | None = None) -> Confusion:
    """Return the confusion matrix and Cohen's kappa (1960) of two judges' grades (items,), over what both graded."""
    array = _check_grades(np.stack([first, second]))
    both = array[:, ~np.isnan(array).any(axis=0)]
    grades = np.unique(both) if scale is None else np.array(sorted(scale), np.float64)
    if not np.isin(both, grades).all():
        raise JudgingError(f"A grade is not on the scale {', '.join(f'{grade:g}' for grade in grades)}.")
    size = len(grades)
    places = np.searchsorted(grades, both)
    counts = np.bincount(places[0] * size + places[1], minlength=size * size).reshape(size, size)
    return Confusion(tuple(grades.tolist()), counts.astype(np.int64), _kappa(counts))


def shifts(grades: Values) -> tuple[Shift, ...]:
    """Return the shift of each judge of `grades` (judges, items) against the mean of the others."""
    array = _check_grades(grades)
    graded = ~np.isnan(array)
    total, number = np.nansum(array, axis=0), graded.sum(axis=0)
    result = []
    for row, judge_graded in zip(array, graded, strict=True):
        shared = judge_graded & (number > 1)
        other_mean = (total[shared] - row[shared]) / (number[shared] - 1)
        mean = float((row[shared] - other_mean).mean()) if shared.any() else None
        result.append(Shift(mean, int(shared.sum())))
    return tuple(result)


def _kappa(counts: NDArray[np.int64]) -> float | None:
    n = int(counts.sum())
    by_chance = float((counts.sum(axis=0) * counts.sum(axis=1)).sum()) / n**2 if n else 1.0
    return None if by_chance >= 1 else (float(np.trace(counts)) / n - by_chance) / (1 - by_chance)


def _coincidences(counts: NDArray[np.int64]) -> Values:
    """Return the pairs of grades of each item, (items, v, v), each weighing 1 / (grades of the item − 1)."""
    pairs: Values = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1])
    pairs /= (counts.sum(axis=1) - 1)[:, None, None]
    return pairs


def _bootstrap_alphas(counts: NDArray[np.int64], *, seed: int, resamples: int) -> Values:
    """Return the alphas of items drawn with replacement; a draw in which nothing differs agrees perfectly."""
    items, width = counts.shape
    rng = np.random.default_rng((seed, 17))
    weights = rng.multinomial(items, np.full(items, 1 / items), size=resamples).astype(np.float64)
    coincidences = weights @ _coincidences(counts).reshape(items, -1)
    return np.nan_to_num(_alphas(weights @ counts, coincidences.reshape(-1, width, width)), nan=1.0)


def _check_grades(grades: Values) -> Values:
    array = np.asarray(grades, np.float64)
    if array.ndim != 2 or np.isinf(array).any():
        raise JudgingError("Grades must be judges × items, with finite numbers, or NaN for no grade.")
    return array
