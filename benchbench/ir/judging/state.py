"""State of a judging round: what its grades have settled, and which pair to judge next.

There are two levels of certainty.

**Under every filling.** `lower_bound` and `upper_bound` of a pair bound the difference of two means over all grades
that the holes could get. If both have one sign, no further grade can change the order of the two runs on these queries.

**At 95 %.** The verdict is that of `statistics`: the best group, by significant differences. The grades so far and a
model of relevance (`relevance`) give the chance of each filling; `draws` fillings are drawn, each measured and judged
as a finished round would be, and the share that ends in the likeliest verdict is its probability. Pairs are called
settled together: taken by falling probability, as many as have all their outcomes in 95 % of the fillings at once. So
under the model the chance that even one of them changes is at most 5 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from benchbench.ir.statistics.verdict import Verdict

RULES = 7  # changes with what a state holds and how it is found: a stored state of other rules is out of date
WITHIN = 1.96  # spreads on each side of what is expected, for 95 %


@dataclass(frozen=True, slots=True)
class RunState:
    """The mean of a run over the compared queries once all is judged: expected, and a 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairState:
    """Two runs, by their rows. All differences are `first` − `second`, of means over the compared queries."""

    first: int
    second: int
    lower_bound: float
    upper_bound: float
    difference: float  # expected
    standard_deviation: float  # over the fillings: what the holes leave open
    outcome: int  # likeliest, once all is judged: 1 first significantly better, −1 second, 0 neither
    probability: float  # of that outcome
    is_settled: bool  # at 95 %, together with all others that are called so
    low: float  # 95 % interval of the difference once all is judged
    high: float
    margin: float | None  # difference ± it covers the choice of queries too, as in `Outcomes.margins`

    @property
    def reversed(self) -> PairState:
        """Return the pair with `first` and `second` exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            lower_bound=-self.upper_bound,
            upper_bound=-self.lower_bound,
            difference=-self.difference,
            outcome=-self.outcome,
            low=-self.high,
            high=-self.low,
        )

    @property
    def certain_order(self) -> int | None:
        """Return 1 or −1 if that run leads under every filling, 0 if they are equal under every filling; else None."""
        if self.lower_bound == self.upper_bound == 0:
            return 0
        return 1 if self.lower_bound > 0 else -1 if self.upper_bound < 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreGrades:
    """About how many more grades, given out in the decisive order, settle the verdict: half of the time by `median`,
    in nine of ten by `p90`. None where it takes all holes, or no number can be given yet."""

    median: int | None
    p90: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State of a round after its grades so far."""

    pairs: tuple[PairState, ...]  # all, as in `statistics.compare`
    runs: tuple[RunState, ...]  # by row; empty in a record of older rules
    verdict: tuple[int, ...]  # the likeliest best group, by row
    winner: int | None  # where the group is one run
    probability: float  # of the verdict
    threshold: float | None  # the probability that settles it; None in a record of older rules
    is_settled: bool  # at 95 %: the round's question is answered
    is_certain: bool  # every pair has the same order under every filling
    judged: int  # pairs of the pool with a grade
    unjudged: int
    queries: int  # compared: every run answered them
    grades_needed: MoreGrades
    reason: str | None  # why nothing is called settled yet, if the grades are too few

    def get_pair(self, first: int, second: int) -> PairState:
        """Return the pair of two rows seen from `first`."""
        low, high = sorted((first, second))
        pair = self.pairs[low * (2 * len(self.runs) - low - 1) // 2 + high - low - 1]
        return pair if pair.first == first else pair.reversed

    def judge(self, rows: Sequence[int], baseline: int | None = None) -> Verdict:
        """Return the likeliest verdict on some of the runs, which it numbers by their place in `rows`, as `baseline`.

        Its order is that of the expected means.
        """
        order = sorted(range(len(rows)), key=lambda run: (-self.runs[rows[run]].mean, run))
        reference = order[0] if baseline is None else baseline
        outcomes = {run: self.get_pair(rows[run], rows[reference]).outcome for run in order if run != reference}
        if baseline is None and len(rows) == len(self.runs):  # the joint verdict, whose probability is stated
            outcomes = {run: 0 if rows[run] in self.verdict else -1 for run in outcomes}
        better, undecided, worse = (
            tuple(run for run, outcome in outcomes.items() if outcome == standing) for standing in (1, 0, -1)
        )
        return Verdict(
            reference=reference,
            against_baseline=baseline is not None,
            better=better,
            undecided=undecided,
            worse=worse,
            more_queries=(None,) * len(undecided),
        )

    def as_record(self) -> dict[str, Any]:
        """Return the state as JSON data; `from_record` reads it."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Return the state that `as_record` wrote; one of older rules has no `runs`."""
        record = {"threshold": None, **record}
        pairs = tuple(PairState(**_add_interval(pair)) for pair in record["pairs"])
        runs = tuple(RunState(**run) for run in record.get("runs", ()))
        needed, verdict = MoreGrades(**record["grades_needed"]), tuple(record["verdict"])
        return cls(
            **{"threshold": None, **record, "pairs": pairs, "runs": runs, "grades_needed": needed, "verdict": verdict}
        )


def _add_interval(pair: Mapping[str, Any]) -> Mapping[str, Any]:
    reach = WITHIN * pair["standard_deviation"]
    return {"low": pair["difference"] - reach, "high": pair["difference"] + reach, "margin": None, **pair}
