"""Notices of a query's pages: what was not read of it, ties in its rankings, duplicates of judged documents."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from apps.execution.running.conclusions import MOST_TIED, advise_on_ties
from apps.execution.running.unanswered import LONGER_ENCODER, LONGER_RERANKER
from apps.mappings.identity import DUPLICATES_REMEDY, describe_unjudged_duplicate
from apps.records.finding import group_warnings
from apps.records.models import Benchmark, QueryResult, Run
from apps.records.models.batches import list_noted_stages
from apps.records.planning import plan_of
from apps.retrieval.encoders.base import CUT
from benchbench.decimals import format_share
from benchbench.ir.planning.labels import strip_model_path
from benchbench.ir.planning.stages import EncodeStage, EngineStage, RerankStage, Stage
from benchbench.ir.ranking import mark_tied


def list_notices(
    benchmark: Benchmark, results: Sequence[QueryResult], labels: Sequence[str], judged: Collection[int]
) -> list[str]:
    """Return the notices on one query, each with its remedy. Ties and duplicates count where a run is warned of them.

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
    if not any(_is_warned(run, DUPLICATES_REMEDY) for run in runs):
        return by_run
    return [*by_run, *describe_unjudged_duplicate(benchmark.mapping, judged, state=benchmark.state)]


def _is_warned(run: Run, remedy: str) -> bool:
    return any(remedy in warning for warning in run.warnings)


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
    tied, advice = mark_tied(np.array(result.scores), depth), advise_on_ties(run)
    if len(tied) and tied.mean() >= MOST_TIED and _is_warned(run, advice):
        yield f"{format_share(tied.mean())} of the first {depth} positions have the score of a neighbour: {advice}"
