"""Do one batch of a benchmark: its queries, through every run that is not finished."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models.functions import Now

from apps.benchmarks import isolated
from apps.benchmarks.evaluating import truth_of
from apps.benchmarks.launching import UNFINISHED
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.pairs import Pairs
from apps.benchmarks.planning import plan_of, stage_units
from apps.benchmarks.rankings import RunResult, results_of
from apps.benchmarks.stages import Outcome, Stages
from apps.benchmarks.storing import store_results, store_stage_lists
from apps.datasets.models import Query
from apps.operations.leasing import Lease
from apps.operations.models import Batch
from apps.retrieval.searching import OpenIndex, open_index
from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.plan import Stage


def execute(batch: Batch, lease: Lease) -> None:
    """Search, store and measure the batch's queries. What it stores is committed at once, or not at all."""
    operation = batch.operation
    benchmark = Benchmark.objects.select_related("mapping", "dataset_version").get(pk=operation.subject_id)
    runs = list(
        benchmark.runs.filter(pk__in=operation.parameters["run_ids"], status__in=UNFINISHED).select_related("index")
    )
    benchmark.runs.filter(pk__in=[run.pk for run in runs], status=Run.Status.PENDING).update(
        status=Run.Status.EVALUATING, started_at=Now()
    )
    queries = list(Query.objects.filter(pk__in=batch.payload["query_ids"]).order_by("pk"))
    indexes = {run.config.get("index"): open_index(run.index) for run in runs if run.index}
    # An error that might pass costs the batch an attempt; on its last one, it is recorded with the queries it hit.
    tolerant = batch.attempts >= settings.BENCHBENCH_MAX_ATTEMPTS
    run_queries = isolated.run_queries if benchmark.execution == Benchmark.Execution.ISOLATED else shared_queries
    results, outcomes = run_queries(benchmark, runs, queries, indexes, lease, tolerant=tolerant)
    lease.check()
    with lease.commit({"runs": contributions(benchmark, results)}):
        store_results(results)
        store_stage_lists(benchmark, plan_of(runs), outcomes, [query.pk for query in queries], indexes)


def shared_queries(
    benchmark: Benchmark,
    runs: Sequence[Run],
    queries: Sequence[Query],
    indexes: dict[str | None, OpenIndex],
    lease: Lease,
    *,
    tolerant: bool,
) -> tuple[list[RunResult], dict[str, list[Outcome]]]:
    """Do every distinct stage of the runs once for all the queries."""
    plan = plan_of(runs)
    done = 0

    def report(stage: Stage) -> None:
        nonlocal done
        done += stage_units(stage) * len(queries)
        lease.report(done)

    stages = Stages(queries, indexes, tolerant=tolerant, pairs=Pairs(benchmark), on_part=lease.check)
    outcomes = stages.run(plan, on_stage=report)
    query_ids = [query.pk for query in queries]
    return list(results_of(plan, outcomes, query_ids, indexes, max_k=max(benchmark.k_values))), outcomes


def contributions(benchmark: Benchmark, results: Sequence[RunResult]) -> dict[str, dict[str, Any]]:
    """Return what a batch adds to each run's provisional means: queries done, failed and counted, sums per measure."""
    ground_truth = truth_of(benchmark, benchmark.dataset_version)
    measures = [Measure.parse(name) for name in benchmark.measures]
    by_run: dict[str, list[RunResult]] = {}
    for result in results:
        if result.repetition == 1:
            by_run.setdefault(str(result.run_id), []).append(result)
    parts = {}
    for run_id, mine in by_run.items():
        answered = [result for result in mine if not result.error]
        graded = GradedRankings.of(
            [result.document_ids for result in answered], [ground_truth.grades[result.query_id] for result in answered]
        )
        counted = graded.has_relevant if benchmark.empty_queries == "skip" else np.ones(len(answered), bool)
        parts[run_id] = {
            "completed": len(mine),
            "failed": len(mine) - len(answered),
            "counted": int(counted.sum()),
            "short": sum(result.short for result in mine),
            "sums": evaluate(measures, graded)[:, counted].sum(axis=1).tolist(),
        }
    return parts
