"""Rankings of documents, from the outcome of a run's last stage."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from uuid import UUID

from django.conf import settings

from apps.benchmarks.measuring.run_result import RunResult
from apps.benchmarks.running.outcomes import Outcome
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.ir.planning.plan import DenseStage, EncodeStage, FuseStage, LexicalStage, Plan, RerankStage, RunPlan
from benchbench.ir.ranking import collapse, cut, unit_scores

TIMED = {
    EncodeStage: "encode_ms",
    DenseStage: "search_ms",
    LexicalStage: "search_ms",
    FuseStage: "fuse_ms",
    RerankStage: "rerank_ms",
}


def results_of(
    plan: Plan,
    outcomes: Mapping[str, Sequence[Outcome]],
    query_ids: Sequence[int],
    indexes: Mapping[str | None, OpenIndex],
    *,
    max_k: int,
    repetition: int = 1,
) -> Iterator[RunResult]:
    """Yield the result of every run of the plan for every query: threshold, cut at top_k chunks, collapse to documents.

    A query's time in a run is the sum of what its own stages cost, as if the run were alone; past
    BENCHBENCH_QUERY_TIMEOUT_MS it is an error.
    """
    for run in plan.runs:
        run_id = UUID(run.run_key)
        index_of = cache(lambda name: indexes[name])  # opened only where a query needs it, and once a run
        for number, query_id in enumerate(query_ids):
            yield _result(run, outcomes, number, (run_id, query_id, repetition), index_of, max_k)


def _result(
    run: RunPlan,
    outcomes: Mapping[str, Sequence[Outcome]],
    number: int,
    key: tuple[UUID, int, int],
    index_of: Callable[[str | None], OpenIndex],
    max_k: int,
) -> RunResult:
    timings = _timings(run, outcomes, number)
    errors = (outcomes[stage.key][number].error for stage in run.stages)
    error = next(filter(None, errors), "") or _too_slow(timings["total_ms"])
    if error:
        return RunResult(*key, timings=timings, error=error)
    found = outcomes[run.final][number].value.head(run.candidates)
    compared = unit_scores(run.unit_kind, found.compared_scores)
    kept = cut(found, unit_scores=compared, threshold=run.threshold, top_k=run.top_k)
    index = index_of(run.index)  # opened only now: one that cannot be is an error of the stages, told already
    documents = index.document_ids[kept.ids]
    first = collapse(documents)
    return RunResult(
        *key,
        document_ids=documents[first],
        chunk_ids=index.chunk_ids[kept.ids[first]],
        scores=kept.scores[first],
        timings=timings,
        short=len(first) < max_k and _limit(run) <= len(kept) < len(index.chunk_ids),
    )


def _limit(run: RunPlan) -> int:
    """How many chunks the run keeps at most."""
    reranked = [stage.depth for stage in run.stages if isinstance(stage, RerankStage)]
    return min(run.top_k, run.candidates, *reranked)


def _timings(run: RunPlan, outcomes: Mapping[str, Sequence[Outcome]], number: int) -> dict[str, float]:
    """Sum the costs of the stages that the run needs, by what they do."""
    timings: dict[str, float] = {}
    for stage in run.stages:
        ms = outcomes[stage.key][number].ms
        if ms is not None:
            name = TIMED[type(stage)]
            timings[name] = timings.get(name, 0.0) + ms
    return {**timings, "total_ms": sum(timings.values())}


def _too_slow(total_ms: float) -> str:
    limit = settings.BENCHBENCH_QUERY_TIMEOUT_MS
    if total_ms <= limit:
        return ""
    return f"The query took {total_ms:.0f} ms, longer than BENCHBENCH_QUERY_TIMEOUT_MS ({limit} ms) allows."
