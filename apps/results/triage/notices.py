"""Notices of a query's pages: what was not read of it, ties in its rankings, duplicates of judged documents."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from apps.execution.running.conclusions import advise_on_ties
from apps.execution.running.unanswered import LONGER_ENCODER, LONGER_RERANKER
from apps.mappings.identity import describe_unjudged_duplicate
from apps.records.finding import group_warnings
from apps.records.models import Benchmark, QueryResult, Run
from apps.records.models.batches import list_noted_stages
from apps.records.planning import plan_of
from apps.retrieval.encoders.base import CUT
from benchbench.ir.planning.labels import strip_model_path
from benchbench.ir.planning.stages import EncodeStage, EngineStage, RerankStage, Stage
from benchbench.ir.ranking import mark_tied

MANY_TIED = 0.5  # share of one ranking's positions; a few pairs are usual when ranks are fused


def list_notices(
    benchmark: Benchmark, results: Sequence[QueryResult], labels: Sequence[str], judged: Collection[int]
) -> list[str]:
    """Return the notices on one query, each with its remedy.

    `results` are its rankings, under the labels of their runs; one ranking needs no label. `judged` are the ids of its
    judged documents.
    """
    if benchmark.is_external or not results:
        return []
    runs = [result.run for result in results]
    stages = {planned.run_key: planned.stages for planned in plan_of(runs).runs}
    noted = list_noted_stages(benchmark, CUT, results[0].query_id)
    depth = max(benchmark.k_values)
    notices = [
        [*_yield_cut(stages[str(run.pk)], noted), *_yield_ties(run, result, depth)]
        for run, result in zip(runs, results, strict=True)
    ]
    by_run = group_warnings(notices, labels) if len(results) > 1 else notices[0]
    return [*by_run, *_find_duplicate(benchmark, judged)]


def _find_duplicate(benchmark: Benchmark, judged: Collection[int]) -> list[str]:
    if benchmark.identical_texts == "judged":
        return []
    return describe_unjudged_duplicate(benchmark.mapping, judged, state=benchmark.state)


def _yield_cut(stages: Sequence[Stage], noted: Collection[str]) -> Iterator[str]:
    for stage in stages:
        if stage.key in noted and isinstance(stage, EncodeStage | EngineStage):
            yield f"The encoder does not read the end of this query. Shorten it, or {LONGER_ENCODER}"
        elif stage.key in noted and isinstance(stage, RerankStage):
            yield (
                f"The reranker {strip_model_path(stage.reranker)} does not read the end of some texts together with "
                f"this query. {LONGER_RERANKER}"
            )


def _yield_ties(run: Run, result: QueryResult, depth: int) -> Iterator[str]:
    tied = mark_tied(np.array(result.scores), depth)
    if len(tied) and tied.mean() >= MANY_TIED:
        yield (f"Half or more of the first {depth} positions have the score of a neighbour: {advise_on_ties(run)}")
