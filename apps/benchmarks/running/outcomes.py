"""Outcomes of stages: lists fused and checked, and their cost, which queries done together share."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings

from apps.benchmarks.running.open_indexes import StageError
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import FuseStage, MergeStage, OfIndex
from benchbench.ir.ranking import rrf, weighted
from benchbench.ir.records import NO_CALLS, Calls, ScoredList

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
            most_ms = sum(outcomes[key][number].together_ms or outcomes[key][number].ms or 0.0 for key in keys)
            if most_ms <= settings.BENCHBENCH_QUERY_TIMEOUT_MS:
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


def check_lists(stage: OfIndex, index: OpenIndex, lists: Sequence[ScoredList]) -> None:
    """Raise StageError for a list that its index cannot have."""
    count = len(index.chunk_ids)
    for scored in lists:
        if len(scored.scores) != len(scored) or not ((scored.ids >= 0) & (scored.ids < count)).all():
            what = f"chunks that are none of its {count:,}"
        elif not np.isfinite(scored.scores).all() or not np.isfinite(scored.compared_scores).all():
            what = "a score that is not a finite number"
        else:
            continue
        raise StageError(
            f'The stage {stage.key} gave {what}: the index "{index.index}" is damaged, or a model gives what it '
            "cannot. Look at the model's files, and make a new version of the index."
        )


def left_out(hung: Mapping[str, str], query_id: int) -> Outcome | None:
    """Return the error of a query at which a model hung in an earlier attempt: of any, where it hung at two of them.

    `hung` has the sentences by query; that without one ("") is of several queries together, and nobody's.
    """
    alone = {query: sentence for query, sentence in hung.items() if query}
    sentence = alone.get(str(query_id), "")
    if not sentence and len(alone) > 1:
        sentence = f"Not tried, after {len(alone)} other queries at which it hung. {next(iter(alone.values()))}"
    return Outcome(error=sentence) if sentence else None


VARIANTS_RRF_K = 60  # the constant of Cormack, Clarke and Büttcher


def fuse(stage: FuseStage | MergeStage, lists: Sequence[ScoredList]) -> Outcome:
    """Fuse the lists of one query, in the order of the stage's needs."""
    started = time.perf_counter()
    if isinstance(stage, MergeStage):
        fused = rrf(lists, k=VARIANTS_RRF_K, depth=stage.candidates)
    elif stage.weights is None:
        fused = rrf(lists, k=stage.constant, depth=stage.candidates)
    else:
        fused = weighted(lists, weights=stage.weights, depth=stage.candidates)
    return Outcome(fused.head(stage.candidates), (time.perf_counter() - started) * 1000)
