"""Parts of a gate: its rules, the measured values, and the result of each rule.

`gate_checks` holds one against the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.measures import Measure
from benchbench.ir.profiles import Mean

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Outcome(StrEnum):
    """What cannot be decided is never a pass: the measured data do not hold what the rule asks for."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "cannot be decided"


@dataclass(frozen=True, slots=True)
class Floor:
    """A mean of a measure over all queries, or those of a slice, is at least this.

    A slice with fewer queries than `minimum_queries` decides nothing.
    """

    measure: Measure
    at_least: float
    slice: str = ""
    minimum_queries: int = 1
    mean: Mean = Mean.BENCHMARK


@dataclass(frozen=True, slots=True)
class Change:
    """What may become of a measure's mean against the baseline: one of the two is stated, as a difference of means.

    `may_lose`: no loss that is significant and larger than this. `must_gain`: a gain that is significant and at least
    this large.
    """

    measure: Measure
    may_lose: float | None = None
    must_gain: float | None = None


@dataclass(frozen=True, slots=True)
class MustNotFail:
    """In each of these queries the measure is at least this. A query that ended in an error has failed."""

    queries: tuple[str, ...]
    measure: Measure
    at_least: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What a gate asks for.

    `false_answers` is the greatest share of the queries without any relevant judgment that may be answered at all;
    `latency_ms` the greatest mean, p50, p95 or p99. `alpha` is shared by all `changes`. With `runs_may_fail` those
    that completed stand for a benchmark of which others did not.
    """

    floors: tuple[Floor, ...] = ()
    changes: tuple[Change, ...] = ()
    must_not_fail: tuple[MustNotFail, ...] = ()
    false_answers: float | None = None
    latency_ms: tuple[tuple[str, float], ...] = ()
    failed_queries: int | None = None
    runs_may_fail: bool = False
    alpha: float = 0.05

    @property
    def measures(self) -> list[Measure]:
        """Every measure that a rule names, once."""
        rules: tuple[Floor | Change | MustNotFail, ...] = (*self.floors, *self.changes, *self.must_not_fail)
        return list(dict.fromkeys(rule.measure for rule in rules))


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a measure less that of the baseline over the `n` queries compared, and its interval.

    Significant, and only then, the interval leaves out 0. It is None where n is too small for anything to be so.
    """

    mean: float
    interval: tuple[float, float] | None
    significant: bool
    n: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was measured of one run over the q queries of a dataset version. Masks and values are (q,)."""

    keys: Sequence[str]
    failed: Mask
    """Ended in an error: in no mean."""
    counted: Mask
    """In the means of the benchmark."""
    n_judgments: NDArray[np.int64]
    """How many judgments of any grade each query has."""
    values: Mapping[Measure, Values]
    """Per query, of every measure that a rule names; what stands for a failed query is not read."""
    slices: Mapping[str, Mask]
    unanswerable: Mask
    """No judgment of the query is relevant."""
    returned: Mask
    """The run returned a document."""
    latency_ms: Mapping[str, float]
    samples: int
    """How many searches were timed."""
    shared: bool
    """Times are sums of shared stages, not of single searches."""
    differences: Mapping[Measure, Difference | str]
    """Against the baseline, or the sentence that says why there is none."""


@dataclass(frozen=True, slots=True)
class Check:
    """One rule and what came of it. `value` is what was found as a number where it is one, `n` how many queries.

    `mean` says which mean a floor is on.
    """

    name: str
    wanted: str
    found: str
    outcome: Outcome
    n: int | None = None
    note: str = ""
    value: float | None = None
    mean: Mean | None = None


def overall(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of several: one that cannot be decided leaves all of them so, then one that failed fails them."""
    for outcome in (Outcome.UNDECIDED, Outcome.FAILED):
        if outcome in outcomes:
            return outcome
    return Outcome.PASSED
