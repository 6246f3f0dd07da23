"""Storing the results of a batch by COPY: rankings and stage lists. A second write replaces the first."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat

import numpy as np

from apps.benchmarks.measuring.run_result import RunResult
from apps.benchmarks.models import Benchmark, QueryResult, StageList
from apps.benchmarks.running.outcomes import Outcome
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench import binary
from benchbench.ir.planning.plan import EncodeStage, Plan
from benchbench.ir.records import ScoredList

TIMINGS = ("encode_ms", "search_ms", "fuse_ms", "rerank_ms", "total_ms")


def store_results(results: Sequence[RunResult]) -> None:
    QueryResult.objects.filter(
        run__in={result.run_id for result in results}, query__in={result.query_id for result in results}
    ).delete()
    columns = ("run_id", "query_id", "repetition", "document_ids", "chunk_ids", "scores", *TIMINGS, "error")
    rows = zip(
        (binary.uuid_field(result.run_id) for result in results),
        (binary.int8(result.query_id) for result in results),
        (binary.int2(result.repetition) for result in results),
        binary.int8_arrays(result.document_ids for result in results),
        binary.int8_arrays(result.chunk_ids for result in results),
        binary.float8_arrays(result.scores for result in results),
        *(map(binary.float8, _timings(results, name)) for name in TIMINGS),
        (binary.text(result.error.replace("\0", "")) for result in results),
        strict=True,
    )
    binary.copy_rows(QueryResult._meta.db_table, columns, rows)


def _timings(results: Sequence[RunResult], name: str) -> Iterator[float | None]:
    return ((result.timings or {}).get(name) for result in results)


def store_stage_lists(
    benchmark: Benchmark,
    plan: Plan,
    outcomes: Mapping[str, Sequence[Outcome]],
    query_ids: Sequence[int],
    indexes: Mapping[str | None, OpenIndex],
) -> None:
    """Keep each distinct stage's list of each query once; stages that failed have none."""
    stages = [stage for stage in plan.stages if not isinstance(stage, EncodeStage)]
    StageList.objects.filter(
        benchmark=benchmark, query__in=query_ids, stage_key__in=[stage.key for stage in stages]
    ).delete()
    made = [
        (stage, query_id, outcome)
        for stage in stages
        for query_id, outcome in zip(query_ids, outcomes[stage.key], strict=True)
        if not outcome.error
    ]
    chunks_of = cache(lambda name: indexes[name].chunk_ids)  # each index is looked up once, not for every list
    rows = zip(
        repeat(binary.uuid_field(benchmark.pk), len(made)),
        (binary.text(stage.key) for stage, _, _ in made),
        (binary.int8(query_id) for _, query_id, _ in made),
        binary.int8_arrays(chunks_of(stage.index)[outcome.value.ids] for stage, _, outcome in made),
        binary.float8_arrays(outcome.value.scores for _, _, outcome in made),
        (_compared(outcome.value) for _, _, outcome in made),
        (binary.float8(outcome.ms) for _, _, outcome in made),
        strict=True,
    )
    columns = ("benchmark_id", "stage_key", "query_id", "chunk_ids", "scores", "threshold_scores", "duration_ms")
    binary.copy_rows(StageList._meta.db_table, columns, rows)


def _compared(ranked: ScoredList) -> bytes:
    """What thresholds compare; null where it is what orders."""
    compared = ranked.threshold_scores
    if compared is None or np.array_equal(compared, ranked.scores):
        return binary.NULL
    return next(binary.float8_arrays([compared]))
