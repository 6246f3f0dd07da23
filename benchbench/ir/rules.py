"""Rules of a gate, written before a run is made (docs/gates.md)."""

from __future__ import annotations

from dataclasses import dataclass

from benchbench.ir.measures import Measure
from benchbench.ir.profiles import Mean


@dataclass(frozen=True, slots=True)
class Floor:
    """A rule that a measure's mean over all queries, or those of a slice, is `at_least` this.

    A slice with fewer queries than `minimum_queries` leaves the rule undecided.
    """

    measure: Measure
    at_least: float
    slice: str = ""
    minimum_queries: int = 1
    mean: Mean = Mean.BENCHMARK


@dataclass(frozen=True, slots=True)
class Change:
    """A limit on the change of a measure's mean against the baseline. Exactly one of the two differences is given.

    `may_lose`: the interval of the difference excludes a larger loss; with `unless_significant` it is enough that no
    larger loss is significant. `must_gain`: a significant gain of at least this.
    """

    measure: Measure
    may_lose: float | None = None
    must_gain: float | None = None
    unless_significant: bool = False


@dataclass(frozen=True, slots=True)
class MustNotFail:
    """A rule that the measure is `at_least` this in each of `queries`. A query that ended in an error fails it."""

    queries: tuple[str, ...]
    measure: Measure
    at_least: float


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a gate.

    `false_answers` is the greatest allowed share of answered queries among those without a relevant judgment.
    `latency_ms` holds the greatest mean, p50, p95 or p99. All `changes` share `alpha`. With `runs_may_fail`, the
    completed runs represent a benchmark in which other runs failed.
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
        """Return every measure that a rule names, once."""
        rules: tuple[Floor | Change | MustNotFail, ...] = (*self.floors, *self.changes, *self.must_not_fail)
        return list(dict.fromkeys(rule.measure for rule in rules))
