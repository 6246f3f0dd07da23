"""Final lists of queries: the outcome of a last stage, its documents, and the cut of each run; stored by COPY."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import QuerySet
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import NO_IDS, FinalList, cut_for_run
from apps.benchmarks.models import StageList
from apps.benchmarks.planning import SharedList
from apps.benchmarks.running.outcomes import Outcome
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.database import binary
from benchbench.ir.planning import stages as planned
from benchbench.ir.planning.plan import Plan, RunPlan
from benchbench.ir.ranking import UnitKind, collapse, scale_scores
from benchbench.ir.records import NO_CALLS, Calls, ScoredList

TIMING_NAMES = {
    planned.RewriteStage: "rewrite_ms",
    planned.EncodeStage: "encode_ms",
    planned.AskStage: "search_ms",
    planned.DenseStage: "search_ms",
    planned.LexicalStage: "search_ms",
    planned.EngineStage: "search_ms",
    planned.LocateStage: "fuse_ms",
    planned.MergeStage: "fuse_ms",
    planned.FuseStage: "fuse_ms",
    planned.RerankStage: "rerank_ms",
}
TimedOutcome = tuple[str, Outcome]  # the name of the timing that a stage counts in, and the outcome for a query


def build_final_lists(
    shared: Iterable[SharedList],
    outcomes: Mapping[str, Sequence[Outcome]],
    query_ids: Sequence[int],
    indexes: Mapping[str | None, OpenIndex],
    *,
    max_k: int,
    repetition: int = 1,
) -> Iterator[FinalList]:
    """Yield each list for every query, collapsed to documents, with the number that each of its runs returns.

    A run returns the documents of its first `candidates` chunks above the threshold, of these at most the first
    `top_k`. A query's time is the sum of the stages of one run, as if the run were alone. More than
    BENCHBENCH_QUERY_TIMEOUT_MS is an error.
    """
    for shared_list in shared:
        cuts = Cuts.from_plans(shared_list.plans)
        stages = shared_list.plans[0].stages  # all runs of a list have the same stages
        names, columns = [TIMING_NAMES[type(stage)] for stage in stages], [outcomes[stage.key] for stage in stages]
        index_of = cache(lambda name: indexes[name])  # opened once per list, if a query needs it
        for query_id, *results in zip(query_ids, *columns, strict=True):
            query_key = query_id, repetition
            yield _build_final_list(
                shared_list, cuts, list(zip(names, results, strict=True)), query_key, index_of, max_k
            )


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts of the runs that share a list: each run keeps at most `max_chunks` chunks above its threshold.

    `limits` are the greatest numbers of chunks that the configurations allow; for a reranked list at most its depth.
    """

    kind: UnitKind
    max_chunks: tuple[int, ...]
    thresholds: tuple[float | None, ...]
    limits: tuple[int, ...]

    @classmethod
    def from_plans(cls, plans: Sequence[RunPlan]) -> "Cuts":
        return cls(
            plans[0].unit_kind,
            tuple(min(plan.candidates, plan.top_k) for plan in plans),
            tuple(plan.threshold if plan.list_key == plan.final else None for plan in plans),
            tuple(_limit(plan) for plan in plans),
        )

    def count_kept(self, scored: ScoredList) -> NDArray[np.int64]:
        """Return the number of chunks that each run keeps: a prefix, because the scores of a list fall."""
        counts = np.minimum(self.max_chunks, len(scored))
        thresholds = {threshold for threshold in self.thresholds if threshold is not None}
        if thresholds:
            units = scale_scores(self.kind, scored.compared_scores)
            passing: dict[float | None, int] = {
                threshold: int(np.count_nonzero(units >= threshold)) for threshold in thresholds
            }
            counts = np.minimum(counts, [passing.get(threshold, len(scored)) for threshold in self.thresholds])
        return counts


def _build_final_list(
    shared: SharedList,
    cuts: Cuts,
    row: Sequence[TimedOutcome],
    query_key: tuple[int, int],
    index_of: Callable[[str | None], OpenIndex],
    max_k: int,
) -> FinalList:
    run, final = shared.plans[0], row[-1][1]
    timings = _sum_timings(row)
    calls = sum((outcome.calls for _, outcome in row), NO_CALLS)
    error = next((outcome.error for _, outcome in row if outcome.error), "") or _check_time(
        timings.get("total_ms", 0.0)
    )
    build = partial(
        FinalList,
        *(shared.source, shared.run_ids, *query_key),
        duration_ms=final.ms,
        timings=timings,
        error=error,
        calls=calls,
    )
    if final.error or final.value is None:
        return build(chunk_ids=None, lengths=(0,) * len(shared.plans))
    if isinstance(run.stages[-1], planned.EngineStage):  # it ranks documents, each once
        numbers = tuple(np.minimum(cuts.max_chunks, 0 if error else len(final.value)).tolist())
        never = (False,) * len(numbers)
        return build(scores=final.value.scores, document_ids=final.value.ids, lengths=numbers, short=never)
    # A list that is not the run's last stage is first cut by the run's threshold.
    scored = final.value if run.list_key == run.final else cut_for_run(run, final.value, top_k=len(final.value))
    index = index_of(run.index)  # opened late: if it cannot be opened, the stages have already recorded the error
    documents = index.document_ids[scored.ids]
    first = collapse(documents)
    counts = np.zeros(len(shared.plans), np.int64) if error else cuts.count_kept(scored)
    lengths = np.searchsorted(first, counts)
    short = (lengths < max_k) & (counts >= cuts.limits) & (counts < len(index.chunk_ids)) & (not error)
    return build(
        chunk_ids=index.chunk_ids[scored.ids],
        scores=scored.scores,
        threshold_scores=scored.threshold_scores,
        document_ids=documents[first],
        chunk_ranks=first + 1 if len(first) < len(documents) else None,
        lengths=tuple(lengths.tolist()),
        short=tuple(short.tolist()),
    )


def _limit(run: RunPlan) -> int:
    """Return the greatest number of chunks that the run keeps."""
    reranked = [stage.depth for stage in run.stages if isinstance(stage, planned.RerankStage)]
    return min(run.top_k, run.candidates, *reranked)


def _sum_timings(row: Sequence[TimedOutcome]) -> dict[str, float]:
    """Return the sum of the costs of the stages by timing, and the total unless a stage failed without a time."""
    timings: dict[str, float] = {}
    for name, outcome in row:
        if outcome.ms is not None:
            timings[name] = timings.get(name, 0.0) + outcome.ms
    if any(outcome.error and outcome.ms is None for _, outcome in row):
        return timings
    return {**timings, "total_ms": sum(timings.values())}


def _check_time(total_ms: float) -> str:
    limit = settings.BENCHBENCH_QUERY_TIMEOUT_MS
    if total_ms <= limit:
        return ""
    return f"The query took {total_ms:.0f} ms, longer than BENCHBENCH_QUERY_TIMEOUT_MS ({limit} ms) allows."


TIMINGS = ("rewrite_ms", "encode_ms", "search_ms", "fuse_ms", "rerank_ms", "total_ms")
CALLS = ("embed_calls", "llm_calls", "llm_cached", "fallback_used")
LIST = ("source_id", "query_id", "repetition", "chunk_ids", "scores", "threshold_scores", "duration_ms", "error")
FINAL = ("document_ids", "chunk_ranks", "lengths", *TIMINGS, *CALLS)


def store_final_lists(lists: Sequence[FinalList]) -> None:
    """Store final lists, with the number of documents that each run returns."""
    _select_lists({final.source for final in lists}, {final.query_id for final in lists}).delete()
    rows = zip(
        *_list_columns(lists),
        binary.encode_int8_arrays(final.document_ids for final in lists),
        _encode_optional(binary.encode_int4_arrays, [final.chunk_ranks for final in lists]),
        binary.encode_int4_arrays(final.lengths for final in lists),
        *([binary.float8((final.timings or {}).get(name)) for final in lists] for name in TIMINGS),
        *zip(*(_encode_calls(final.calls) for final in lists), strict=True) if lists else [[]] * len(CALLS),
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
    """Store each distinct stage's list for each query, except `final` lists. `sources` are by stage key.

    A stored final list of ended runs stays, because their figures depend on it.
    """
    stored = {each.source for each in final}
    stages = [
        stage for stage in plan.stages if isinstance(stage, planned.Searching) and sources[stage.key] not in stored
    ]
    existing = _select_lists({sources[stage.key] for stage in stages}, set(query_ids))
    existing.filter(lengths__isnull=True).delete()
    final_keys = set(existing.values_list("source_id", "query_id"))
    # Build all lists before the COPY: an index that left the cache is loaded again, on the same connection.
    lists = []
    for stage in stages:
        source = sources[stage.key]
        results = [
            (query_id, outcome)
            for query_id, outcome in zip(query_ids, outcomes[stage.key], strict=True)
            if not outcome.error and (source, query_id) not in final_keys
        ]
        chunk_ids = indexes[stage.index].chunk_ids if results else NO_IDS  # without lists it may not open
        lists += [
            FinalList(
                *(source, (), query_id),
                chunk_ids=chunk_ids[outcome.value.ids],
                scores=outcome.value.scores,
                threshold_scores=outcome.value.threshold_scores,
                duration_ms=outcome.ms,
            )
            for query_id, outcome in results
        ]
    binary.copy_rows(StageList._meta.db_table, LIST, zip(*_list_columns(lists), strict=True))


def _list_columns(lists: Sequence[FinalList]) -> Iterator[Iterable[bytes]]:
    """Yield the columns of `LIST`. Threshold scores are null if they equal the scores."""
    yield (binary.int8(final.source) for final in lists)
    yield (binary.int8(final.query_id) for final in lists)
    yield (binary.int2(final.repetition) for final in lists)
    yield _encode_optional(binary.encode_int8_arrays, [final.chunk_ids for final in lists])
    yield binary.encode_float8_arrays(final.scores for final in lists)
    pairs = [(final.scores, final.threshold_scores) for final in lists]
    thresholds = [None if values is None or np.array_equal(values, scores) else values for scores, values in pairs]
    yield _encode_optional(binary.encode_float8_arrays, thresholds)
    yield (binary.float8(final.duration_ms) for final in lists)
    yield (binary.text(final.error.replace("\0", "")) for final in lists)


def _encode_calls(calls: Calls | None) -> tuple[bytes, ...]:
    if calls is None:
        return (binary.NULL,) * len(CALLS)
    counts = (binary.int4(count) for count in (calls.embed, calls.llm, calls.llm_cached))
    return (*counts, binary.boolean(calls.fallback_used))


def _select_lists(sources: set[int], query_ids: set[int]) -> QuerySet[StageList]:
    return StageList.objects.filter(source__in=sources, query__in=query_ids)


def _encode_optional(encode: Callable[[Iterable[Any]], Iterator[bytes]], column: Sequence[Any]) -> Iterator[bytes]:
    """Encode arrays, with None as null."""
    encoded = encode(NO_IDS if values is None else values for values in column)
    return (binary.NULL if values is None else packed for values, packed in zip(column, encoded, strict=True))
