"""The mean of a measure over the queries that count, and when too many queries lack a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.demand import weigh
from benchbench.ir.measures.graded import Values

EmptyQueries = Literal["zero", "skip"]


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """The means of m measures over the queries that count, and how many queries those are.

    `values` is (m,), NaN where no query has a value: a mean of nothing is not 0. `empty` counts the answered queries
    without relevant judgments, which the policy counted as 0 or skipped.
    """

    values: Values
    counted: int
    empty: int
    failed: int


def mean(
    values: Values,
    *,
    has_relevant: NDArray[np.bool_],
    failed: NDArray[np.bool_] | None = None,
    empty: EmptyQueries = "zero",
    weights: Values | None = None,
) -> Means:
    """Return the mean over queries of each row of `values` (m, q), correctly rounded and so independent of their order.

    With `weights` (q,) it is Σwx / Σw, see `benchbench.ir.demand`. Equal weights give the plain mean, to the bit.

    `failed` (q,) marks queries that ended in an error; they never count. Queries without relevant judgments, by
    `has_relevant` (q,), count with their value (0) or, with `empty="skip"`, not at all. A NaN value is left out of the
    mean of its measure (`FirstRelevant`, if nothing relevant was found).
    """
    answered = np.ones(has_relevant.shape, bool) if failed is None else ~failed
    counted = answered & has_relevant if empty == "skip" else answered
    weighted = None if weights is None else weights[counted]
    return Means(
        values=np.array([weigh(row, weighted) for row in values[:, counted]], np.float64),
        counted=int(counted.sum()),
        empty=int((answered & ~has_relevant).sum()),
        failed=int((~answered).sum()),
    )


MAX_LOST_PERCENT = 5


def has_lost_too_many(*, counted: int, lost: int) -> bool:
    """Return whether more than MAX_LOST_PERCENT of `counted` + `lost` queries are lost."""
    return 100 * lost > MAX_LOST_PERCENT * (counted + lost)


def unranked_reason(*, counted: int, failed: int, unsearched: int) -> str:
    """Return why a run whose mean is over `counted` queries is not ranked, in a sentence; "" where it may be.

    `failed` of the others ended in an error, `unsearched` were never searched. Queries are not lost at random: hard
    ones fail, new ones differ. So a mean over the rest may rank, win and pass a gate only if at most MAX_LOST_PERCENT
    of all are lost, in either way.
    """
    lost = failed + unsearched
    if not has_lost_too_many(counted=counted, lost=lost):
        return ""
    reasons = [f"{failed:,} failed: retry the run"] if failed else []
    reasons += [f"{unsearched:,} were not run: clone the benchmark to run them"] if unsearched else []
    verb = "has" if lost == 1 else "have"
    return (
        f"Not ranked: {lost:,} of {counted + lost:,} queries {verb} no value, more than {MAX_LOST_PERCENT} %; "
        f"{'; '.join(reasons)}."
    )
