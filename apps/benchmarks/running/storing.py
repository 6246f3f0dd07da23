"""Storing the lists of a batch by COPY. A second write replaces the first."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from django.db.models import QuerySet

from apps.benchmarks.measuring.final_list import NO_IDS, FinalList
from apps.benchmarks.models import StageList
from apps.benchmarks.running.outcomes import Outcome
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.database import binary
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import Searching
from benchbench.ir.records import Calls

TIMINGS = ("rewrite_ms", "encode_ms", "search_ms", "fuse_ms", "rerank_ms", "total_ms")
CALLS = ("embed_calls", "llm_calls", "llm_cached", "fallback_used")
LIST = ("source_id", "query_id", "repetition", "chunk_ids", "scores", "threshold_scores", "duration_ms", "error")
FINAL = ("document_ids", "chunk_ranks", "lengths", *TIMINGS, *CALLS)


def store_final_lists(lists: Sequence[FinalList]) -> None:
    """Store final lists, with what each run returns of them."""
    _lists({final.source for final in lists}, {final.query_id for final in lists}).delete()
    rows = zip(
        (binary.int8(final.source) for final in lists),
        (binary.int8(final.query_id) for final in lists),
        (binary.int2(final.repetition) for final in lists),
        _optional(binary.int8_arrays, [final.chunk_ids for final in lists]),
        binary.float8_arrays(final.scores for final in lists),
        _optional(binary.float8_arrays, [_compared(final.scores, final.threshold_scores) for final in lists]),
        (binary.float8(final.duration_ms) for final in lists),
        (binary.text(final.error.replace("\0", "")) for final in lists),
        binary.int8_arrays(final.document_ids for final in lists),
        _optional(binary.int4_arrays, [final.chunk_ranks for final in lists]),
        binary.int4_arrays(final.lengths for final in lists),
        *(map(binary.float8, _timings(lists, name)) for name in TIMINGS),
        *zip(*(_calls(final.calls) for final in lists), strict=True) if lists else [[]] * len(CALLS),
        strict=True,
    )
    binary.copy_rows(StageList._meta.db_table, (*LIST, *FINAL), rows)


def store_stage_lists(
    plan: Plan,
    outcomes: Mapping[str, Sequence[Outcome]],
    query_ids: Sequence[int],
    indexes: Mapping[str | None, OpenIndex],
    sources: Mapping[str, int],
    final: Iterable[FinalList],
) -> None:
    """Store each distinct stage's list of each query, but for those that are `final`; `sources` are by stage key.

    A list that is the final one of other runs, which have ended, stays as it is: their figures rest on it.
    """
    stored = {each.source for each in final}
    stages = [stage for stage in plan.stages if isinstance(stage, Searching) and sources[stage.key] not in stored]
    there = _lists({sources[stage.key] for stage in stages}, set(query_ids))
    there.filter(lengths__isnull=True).delete()
    others = set(there.values_list("source_id", "query_id"))
    made = [
        (stage, query_id, outcome)
        for stage in stages
        for query_id, outcome in zip(query_ids, outcomes[stage.key], strict=True)
        if not outcome.error and (sources[stage.key], query_id) not in others
    ]
    chunks_of = cache(partial(_chunk_ids, indexes))  # each index is looked up once, not for every list
    # All before the COPY: an index that was put out meanwhile is read again, by the same connection.
    chunk_ids = [chunks_of(stage)[outcome.value.ids] for stage, _, outcome in made]
    compared = [_compared(outcome.value.scores, outcome.value.threshold_scores) for _, _, outcome in made]
    rows = zip(
        (binary.int8(sources[stage.key]) for stage, _, _ in made),
        (binary.int8(query_id) for _, query_id, _ in made),
        (binary.int2(1) for _ in made),
        binary.int8_arrays(chunk_ids),
        binary.float8_arrays(outcome.value.scores for _, _, outcome in made),
        _optional(binary.float8_arrays, compared),
        (binary.float8(outcome.ms) for _, _, outcome in made),
        (binary.text("") for _ in made),
        strict=True,
    )
    binary.copy_rows(StageList._meta.db_table, LIST, rows)


def _timings(lists: Sequence[FinalList], name: str) -> Iterator[float | None]:
    return ((final.timings or {}).get(name) for final in lists)


def _calls(calls: Calls | None) -> tuple[bytes, ...]:
    if calls is None:
        return (binary.NULL,) * len(CALLS)
    counts = (binary.int4(count) for count in (calls.embed, calls.llm, calls.llm_cached))
    return (*counts, binary.boolean(calls.fallback_used))


def _lists(sources: set[int], query_ids: set[int]) -> QuerySet[StageList]:
    return StageList.objects.filter(source__in=sources, query__in=query_ids)


def _chunk_ids(indexes: Mapping[str | None, OpenIndex], stage: Searching) -> Any:
    return indexes[stage.index].chunk_ids


def _compared(scores: Any, compared: Any) -> Any:
    """What thresholds compare; None where it is what orders."""
    return None if compared is None or np.array_equal(compared, scores) else compared


def _optional(encode: Callable[[Iterable[Any]], Iterator[bytes]], column: Sequence[Any]) -> Iterator[bytes]:
    """Encode arrays, of which some are None: nulls."""
    encoded = encode(NO_IDS if values is None else values for values in column)
    return (binary.NULL if values is None else packed for values, packed in zip(column, encoded, strict=True))
