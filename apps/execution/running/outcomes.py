"""Outcomes of stages: fused and checked lists, and their cost, which queries in one call share."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from django.conf import settings

from apps.execution.running.open_indexes import StageError
from apps.retrieval.encoders import EncoderError
from apps.retrieval.encoders.base import Kind
from apps.retrieval.encoders.encoding import TextVector, time_encoding
from apps.retrieval.models import Index
from apps.retrieval.search.open_indexes import OpenIndex
from apps.retrieval.stores.base import AnswerError
from benchbench.ir.compression import QueryTruncationError
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import FuseStage, LocateStage, MergeStage, OfIndex
from benchbench.ir.ranking import RankingError, rrf, weighted
from benchbench.ir.records import NO_CALLS, Calls, ScoredList

# Errors that a single query may cause; others are of the model or index of all.
QUERY_ERRORS = (AnswerError, EncoderError, RankingError, StageError, QueryTruncationError)
STALLS, DOWN = "stalls", "down"  # keys of a stage's notes

# Notes of a batch by stage: STALLS, a number; DOWN, sentences; other notes are ids of queries (see `Approximation`), so
# that a query that is searched again counts once
BatchNotes = dict[str, dict[str, Any]]
NotedQueries = dict[str, dict[str, set[int]]]  # the ids of a whole benchmark by stage and note


def note(notes: BatchNotes, stage: str, name: str, addition: object) -> None:
    """Add a number or ids of queries to a note of a stage."""
    stage_notes = notes.setdefault(stage, {})
    stage_notes[name] = stage_notes[name] + addition if name in stage_notes else addition


def add_notes(notes: BatchNotes, further: BatchNotes) -> None:
    """Add further notes to those of the same stages."""
    for stage, additions in further.items():
        for name, addition in additions.items():
            note(notes, stage, name, addition)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a stage for one query: a query vector or a scored list, or its error or that of an earlier stage.

    `ms` is the cost; None if it was never measured, as for imported vectors. If `ms` is a share of the time of several
    queries, `together_ms` is the total. `time` repeats the work for this query alone and returns the cost; None if `ms`
    is such a measurement already.
    """

    value: Any = None
    ms: float | None = None
    error: str = ""
    together_ms: float | None = None
    time: Callable[[], float] | None = None
    calls: Calls = NO_CALLS


def build_outcome(index: Index, text: str, encoded: TextVector, kind: Kind) -> Outcome:
    """Return the outcome of encoding a text, which is encoded again for its time if its vector was not imported."""
    again = None if encoded.encode_ms is None else partial(time_encoding, index, text, kind=kind)
    return Outcome(encoded.vector, encoded.encode_ms, together_ms=encoded.together_ms, time=again)


def settle(
    runs: Sequence[RunPlan],
    outcomes: Mapping[str, list[Outcome]],
    notes: BatchNotes,
    *,
    attempt: Callable[[Callable[[], Outcome]], Outcome],
) -> None:
    """Time queries alone that may have exceeded BENCHBENCH_QUERY_TIMEOUT_MS, and update their outcomes in place.

    The limit applies to the sum of a query's stages in a run. A share of a common time can hide a slow query, and a
    stored cost may include a stall of the machine. So if the stages of a query may have exceeded the limit, repeat
    those that were not timed alone. If the repetition takes less than half of the common time, count a stall in `notes`
    (STALLS). `attempt` calls a function and converts an error into an outcome.
    """
    retimed_keys: set[str] = set()
    together = {
        key: max((stage_outcomes.together_ms or 0.0 for stage_outcomes in group), default=0.0)
        for key, group in outcomes.items()
    }
    for keys in dict.fromkeys(tuple(stage.key for stage in run.stages) for run in runs):  # many runs, few chains
        for number in range(len(outcomes[keys[-1]])):
            max_ms = sum(outcomes[key][number].together_ms or outcomes[key][number].ms or 0.0 for key in keys)
            if max_ms <= settings.BENCHBENCH_QUERY_TIMEOUT_MS:
                continue
            for key in keys:
                stage_outcomes = outcomes[key]
                if stage_outcomes[number].time is not None:
                    stage_outcomes[number] = attempt(partial(_measure_time, stage_outcomes[number]))
                    retimed_keys.add(key)
    for key in retimed_keys:
        alone = sum(outcome.ms or 0.0 for outcome in outcomes[key])
        note(notes, key, STALLS, int(together[key] > 2 * alone))


def _measure_time(outcome: Outcome) -> Outcome:
    assert outcome.time is not None
    return replace(outcome, ms=outcome.time(), together_ms=None, time=None)


def check_lists(stage: OfIndex, index: OpenIndex, lists: Sequence[ScoredList]) -> None:
    """Raise StageError for a list with chunks that are not in the index, or scores that are not finite."""
    count = len(index.chunk_ids)
    for scored in lists:
        if len(scored.scores) != len(scored) or not ((scored.ids >= 0) & (scored.ids < count)).all():
            problem = f"chunks outside its {count:,}"
        elif not np.isfinite(scored.scores).all() or not np.isfinite(scored.compared_scores).all():
            problem = "a score that is not a finite number"
        else:
            continue
        raise StageError(
            f'The stage {stage.key} returned {problem}: the index "{index.index}" or a model is damaged. Check the '
            "model's files, and make a new version of the index."
        )


def find_earlier_hang(hung: Mapping[str, str], query_id: int) -> Outcome | None:
    """Return the error of a query at which a model hung in an earlier attempt, or of any query if it hung at two.

    `hung` has the sentences by query. The key "" is a call for several queries and is ignored.
    """
    alone = {query: sentence for query, sentence in hung.items() if query}
    sentence = alone.get(str(query_id), "")
    if not sentence and len(alone) > 1:
        sentence = f"Not tried, because the model hung at {len(alone)} other queries. {next(iter(alone.values()))}"
    return Outcome(error=sentence) if sentence else None


VARIANTS_RRF_K = 60  # from Cormack, Clarke and Büttcher (2009)


def combine(stage: FuseStage | LocateStage | MergeStage, lists: Sequence[ScoredList], index: OpenIndex) -> Outcome:
    """Fuse the lists of one query, in the order of the stage's needs, or locate an engine's documents in `index`."""
    started = time.perf_counter()
    match stage:
        case LocateStage():
            documents, *partner = lists
            located = index.locate(documents.ids, partner[0].ids if partner else None)
            combined = ScoredList(located, documents.scores)
        case MergeStage(candidates=candidates):
            combined = rrf(lists, k=VARIANTS_RRF_K, depth=candidates).head(candidates)
        case FuseStage(candidates=candidates, weights=weights):
            fuse = partial(rrf, k=stage.rrf_k) if weights is None else partial(weighted, weights=weights)
            combined = fuse(lists, depth=candidates).head(candidates)
    return Outcome(combined, (time.perf_counter() - started) * 1000)
