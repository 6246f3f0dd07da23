"""Outcomes of stages as lists: the final ones, whose times and calls are summed, and those of the other stages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from django.conf import settings

from apps.execution.running.outcomes import Outcome
from apps.records.lists.final import (
    NO_IDS,
    ChunkList,
    Cuts,
    FinalList,
    ListKey,
    SearchFacts,
    cut_for_run,
)
from apps.records.planning import SharedList
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.ir.planning import stages as planned
from benchbench.ir.planning.plan import Plan
from benchbench.ir.records import NO_CALLS

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
        run = shared_list.plans[0]  # all runs of a list have the same stages
        cuts = Cuts.from_plans(shared_list.plans, max_k)
        names, columns = [TIMING_NAMES[type(each)] for each in run.stages], [outcomes[each.key] for each in run.stages]
        # A list that is not the run's last stage is first cut by the run's threshold.
        ranks_documents, is_last = isinstance(run.stages[-1], planned.EngineStage), run.list_key == run.final
        get_index = cache(lambda name: indexes[name])  # opened once per list, if a query needs it
        for query_id, *results in zip(query_ids, *columns, strict=True):
            key, final = ListKey(shared_list.source, query_id, repetition), results[-1]
            facts = _build_facts(list(zip(names, results, strict=True)))
            if final.error or final.value is None:
                yield FinalList.failed(key, facts, runs=len(shared_list.plans))
            elif ranks_documents:
                yield FinalList.of_documents(key, final.value, cuts.max_chunks, facts)
            else:
                scored = final.value if is_last else cut_for_run(run, final.value, top_k=len(final.value))
                yield FinalList.of_chunks(key, scored, get_index(run.index), cuts, facts)


def _build_facts(row: Sequence[TimedOutcome]) -> SearchFacts:
    timings = _sum_timings(row)
    error = next((outcome.error for _, outcome in row if outcome.error), "")
    calls = sum((outcome.calls for _, outcome in row), NO_CALLS)
    return SearchFacts(row[-1][1].ms, timings, calls, error or _check_time(timings.get("total_ms", 0.0)))


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


def build_stage_lists(
    plan: Plan,
    outcomes: Mapping[str, Sequence[Outcome]],
    query_ids: Sequence[int],
    indexes: Mapping[str | None, OpenIndex],
    sources: Mapping[str, int],
    final: Iterable[FinalList],
) -> dict[int, list[ChunkList]]:
    """Return the lists of each distinct stage by its source, except `final` lists. `sources` are by stage key."""
    stored = {each.key.source for each in final}
    lists: dict[int, list[ChunkList]] = {}
    for stage in plan.stages:
        if not isinstance(stage, planned.Searching) or (source := sources[stage.key]) in stored:
            continue
        results = [pair for pair in zip(query_ids, outcomes[stage.key], strict=True) if not pair[1].error]
        chunk_ids = indexes[stage.index].chunk_ids if results else NO_IDS  # without lists it may not open
        lists[source] = [
            ChunkList(
                *(ListKey(source, query_id), SearchFacts(outcome.ms), chunk_ids[outcome.value.ids]),
                *(outcome.value.scores, outcome.value.threshold_scores),
            )
            for query_id, outcome in results
        ]
    return lists
