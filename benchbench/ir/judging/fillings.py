"""Fillings of a pool's holes, many at once, and the runs' values under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.pool import JudgingError, Pool
from benchbench.ir.measures import Measure, Values

LINEAR = frozenset({"P", "Hits", "R", "nDCG"})  # a weighted sum of grades over a figure that all runs share
PLACED = frozenset({"AP", "RR", "Success"})

Floats = NDArray[np.float32]


def require_measure(measure: Measure) -> None:
    """Raise JudgingError unless the effect of grades on the measure is known."""
    if measure.name in LINEAR | PLACED:
        return
    if measure.is_ours:
        raise JudgingError(
            f"{measure} cannot decide a round: {_REASONS.get(measure.name, UNKNOWN)}. Use nDCG@10, "
            "P@10, R@100, AP, RR, Success@10 or Hits@10.",
            field="measure",
        )
    raise JudgingError(
        f"{measure} is computed by the library ir_measures, and the effect of unjudged documents on it "
        "is not known. Use nDCG@10, P@10, R@100, AP, RR, Success@10 or Hits@10.",
        field="measure",
    )


UNKNOWN = "the effect of unjudged documents on it is not known"
_REASONS = {
    "Judged": "it counts judgments but ignores their grades",
    "FirstRelevant": "it has no value if nothing relevant is found, so runs would differ in the queries that count",
}


@dataclass(frozen=True, eq=False)
class Shape:
    """Parts of a measure on a pool that need no grades: `discounts` of each pair and run, and the ideal's sums."""

    measure: Measure
    # The grades above 0 that count apart, rising; the first alone for a measure of binary relevance.
    levels: tuple[float, ...]
    discounts: Values  # (R, Q, width): weight of a gain at its rank; 0 past the cutoff and if not ranked
    # (n + 1,): the sum of the first 0, 1, 2, … discounts of an ideal ranking; None for a measure without an ideal.
    ideal: Values | None

    @classmethod
    def from_pool(cls, pool: Pool, measure: Measure, scale: Sequence[float]) -> Shape:
        require_measure(measure)
        levels = tuple(sorted({float(grade) for grade in scale if grade > 0}))
        if not levels:
            raise JudgingError("The scale needs a grade above 0, so that documents can be relevant.", field="scale")
        k = np.inf if measure.cutoff is None else measure.cutoff
        within = np.isfinite(pool.ranks) & (pool.ranks <= k)
        if measure.name == "nDCG":
            discounts = np.where(within, 1.0 / np.log2(pool.ranks + 1.0), 0.0)
        else:
            discounts = within / (max(k, 1) if measure.name == "P" else 1.0)
            levels = levels[:1]
        return cls(measure, levels, discounts, _ideal(measure))

    def select_queries(self, queries: slice) -> Shape:
        """Return the shape of some queries."""
        return replace(self, discounts=self.discounts[:, queries])

    @property
    def widths(self) -> Values:
        """Return the step from each level to the next, (levels,); 1 for a measure of binary relevance."""
        return np.diff(self.levels, prepend=0.0) if self.measure.name == "nDCG" else np.ones(1)

    def sum_ideal(self, counts: NDArray[Any]) -> Values:
        """Return the ideal's sum over these numbers of documents, of any shape."""
        if self.ideal is None:
            return np.ones(np.shape(counts))
        return np.asarray(self.ideal[np.minimum(counts, len(self.ideal) - 1).astype(np.int64)], np.float64)


def _ideal(measure: Measure) -> Values | None:
    if measure.name == "nDCG":
        depth = 10_000 if measure.cutoff is None else measure.cutoff
        return np.append(0.0, np.cumsum(1.0 / np.log2(np.arange(2.0, depth + 2.0))))
    return np.arange(100_001.0) if measure.name in ("R", "AP") else None


def compute_reach(grades: Values, levels: Sequence[float]) -> NDArray[np.bool_]:
    """Return whether each grade reaches each level, (levels, …); NaN reaches none."""
    return np.stack([grades >= level if index else grades > 0 for index, level in enumerate(levels)])


def count_outside(outside: Sequence[Sequence[float]], levels: Sequence[float]) -> Values:
    """Return the number of judged documents outside the pool that reach each level, (levels, Q)."""
    return np.array(
        [
            [sum(grade >= level if index else grade > 0 for grade in grades) for grades in outside]
            for index, level in enumerate(levels)
        ],
        np.float64,
    ).reshape(len(levels), len(outside))


def compute_tails(grades: Values, levels: Sequence[float]) -> Values:
    """Return the chance that a relevant document reaches each level, (levels,); each grade has a prior count of 1."""
    reach = compute_reach(grades, levels).reshape(len(levels), -1).sum(axis=1).astype(np.float64)
    before = np.arange(len(reach), 0, -1)
    return np.asarray((reach + before) / (reach[0] + before[0]), np.float64)


def compute_values(pool: Pool, shape: Shape, reach: Sequence[NDArray[np.bool_]], outside: Values) -> Values:
    """Return each run's value of each query under m fillings, (Q, R, m), exact but for float32 in sums of gains.

    `reach` has for each level (Q, width, m) whether each pair reaches it; `outside` is (levels, Q) of `count_outside`.
    Exact for fillings with grades of the scale; a grade between two levels counts as the lower.
    """
    if shape.measure.name in PLACED:
        return compute_placed(pool, shape.measure, reach[0], outside[0])
    widths = shape.widths
    reached = [level.astype(np.float32) for level in reach]
    gains = sum(width * level for width, level in zip(widths.astype(np.float32), reached, strict=True))
    weights = np.ascontiguousarray(np.moveaxis(shape.discounts, 0, 1), np.float32)
    values: Values = (weights @ gains).astype(np.float64)
    if shape.ideal is not None:
        ideal = sum(
            width * shape.sum_ideal(level.sum(axis=1) + outside_count[:, None])
            for width, level, outside_count in zip(widths, reached, outside, strict=True)
        )
        values = np.divide(values, ideal[:, None], out=np.zeros_like(values), where=ideal[:, None] > 0)
    return values


def compute_placed(pool: Pool, measure: Measure, relevant: NDArray[np.bool_], outside: Values) -> Values:
    """Return values that depend on the ranks of relevant documents together: AP, RR, Success."""
    queries, width, m = relevant.shape
    values = np.zeros((queries, pool.runs, m))
    for run, ranks in enumerate(pool.ranks):
        order = np.argsort(ranks, axis=1, kind="stable")
        depth = int(np.isfinite(ranks).sum(axis=1).max(initial=0))
        depth = min(depth, width if measure.cutoff is None else measure.cutoff)
        if not depth:
            continue
        ranked = np.take_along_axis(ranks, order[:, :depth], axis=1)
        hits = np.take_along_axis(relevant, order[:, :depth, None], axis=1) & np.isfinite(ranked)[:, :, None]
        shares = 1.0 / np.where(np.isfinite(ranked), ranked, 1.0)[:, :, None]
        if measure.name == "AP":
            values[:, run] = (np.cumsum(hits, axis=1, dtype=np.float32) * hits * shares).sum(axis=1)
        else:
            values[:, run] = (hits * (shares if measure.name == "RR" else 1.0)).max(axis=1)
    if measure.name == "AP":
        base = (relevant.sum(axis=1) + outside[:, None])[:, None]
        values = np.divide(values, base, out=np.zeros_like(values), where=base > 0)
    return values
