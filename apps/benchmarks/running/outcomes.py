"""Outcomes of stages: what they made of queries, and the cost, shared out where queries were done together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.conf import settings

from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.records import NO_CALLS, Calls

STALLS = "stalls"  # among the notes of a stage

Noted = dict[str, dict[str, Any]]  # per stage, what a batch tells of it: STALLS, a number; ids of queries by what they
# are told for (see `Approximation`), so that one that is searched again counts once
NotedQueries = dict[str, dict[str, set[int]]]  # the ids of a whole benchmark


def note(notes: Noted, stage: str, name: str, more: Any) -> None:
    """Add a number, or ids of queries, to what is told of a stage."""
    told = notes.setdefault(stage, {})
    told[name] = told[name] + more if name in told else more


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage made of one query: a query vector or a scored list; or the error that it, or a stage before, met.

    `ms` is what it cost; None where that was never measured: the vector was imported. Where that is a share of what
    several queries took together, `together_ms` is the whole. `time` does it once more, alone, and returns what that
    cost; None where `ms` was measured so, just now.
    """

    value: Any = None
    ms: float | None = None
    error: str = ""
    together_ms: float | None = None
    time: Callable[[], float] | None = None
    calls: Calls = NO_CALLS

    @property
    def most_ms(self) -> float:
        """What the query itself may have taken."""
        return self.together_ms or self.ms or 0.0


def settle(
    runs: Sequence[RunPlan],
    outcomes: Mapping[str, list[Outcome]],
    notes: Noted,
    *,
    attempt: Callable[[Callable[[], Outcome]], Outcome],
) -> None:
    """Measure by itself whatever may have passed BENCHBENCH_QUERY_TIMEOUT_MS, in place.

    The limit is of the sum of a query's stages in a run. A share hides a query that took longer than the others, and a
    cost that is known from before may have been a stall of the machine. So where the stages of a query may have taken
    longer together than one may, those that were not measured alone are done again for the time they take. Where most
    of what queries took together does not come again, it was nobody's: `notes` counts that in the stage's STALLS.
    `attempt` calls what may raise, and returns the outcome that an error becomes.
    """
    again: set[str] = set()
    together = {
        key: max((made.together_ms or 0.0 for made in all_made), default=0.0) for key, all_made in outcomes.items()
    }
    for keys in dict.fromkeys(tuple(stage.key for stage in run.stages) for run in runs):  # many runs, few chains
        for number in range(len(outcomes[keys[-1]])):
            if sum(outcomes[key][number].most_ms for key in keys) <= settings.BENCHBENCH_QUERY_TIMEOUT_MS:
                continue
            for key in keys:
                made = outcomes[key]
                if made[number].time is not None:
                    made[number] = attempt(partial(_timed, made[number]))
                    again.add(key)
    for key in again:
        alone = sum(outcome.ms or 0.0 for outcome in outcomes[key])
        note(notes, key, STALLS, int(together[key] > 2 * alone))


def _timed(outcome: Outcome) -> Outcome:
    assert outcome.time is not None
    return replace(outcome, ms=outcome.time(), together_ms=None, time=None)
