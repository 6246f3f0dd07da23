"""Write what a batch found: rankings and stage lists, by COPY. Writing a batch again replaces what it wrote before."""

from collections.abc import Mapping, Sequence

import numpy as np

from apps.benchmarks import copying
from apps.benchmarks.models import Benchmark, QueryResult, StageList
from apps.benchmarks.rankings import RunResult
from apps.benchmarks.stages import Outcome
from apps.retrieval.searching import OpenIndex
from benchbench.ir.plan import EncodeStage, Plan

TIMINGS = ("encode_ms", "search_ms", "fuse_ms", "rerank_ms", "total_ms")


def store_results(results: Sequence[RunResult]) -> None:
    QueryResult.objects.filter(
        run__in={result.run_id for result in results}, query__in={result.query_id for result in results}
    ).delete()
    columns = ("run_id", "query_id", "repetition", "document_ids", "chunk_ids", "scores", *TIMINGS, "error")
    copying.copy_rows(QueryResult._meta.db_table, columns, (_result_row(result) for result in results))


def _result_row(result: RunResult) -> list[bytes]:
    timings = result.timings or {}
    return [
        copying.uuid_field(result.run_id),
        copying.int8(result.query_id),
        copying.int2(result.repetition),
        copying.int8_array(result.document_ids),
        copying.int8_array(result.chunk_ids),
        copying.float8_array(result.scores),
        *(copying.float8(timings.get(name)) for name in TIMINGS),
        copying.text(result.error.replace("\0", "")),
    ]


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
    rows = (
        [
            copying.uuid_field(benchmark.pk),
            copying.text(stage.key),
            copying.int8(query_id),
            copying.int8_array(indexes[stage.index].chunk_ids[outcome.value.ids]),
            copying.float8_array(np.asarray(outcome.value.scores)),
            copying.float8(outcome.ms),
        ]
        for stage in stages
        for query_id, outcome in zip(query_ids, outcomes[stage.key], strict=True)
        if not outcome.error
    )
    columns = ("benchmark_id", "stage_key", "query_id", "chunk_ids", "scores", "duration_ms")
    copying.copy_rows(StageList._meta.db_table, columns, rows)
