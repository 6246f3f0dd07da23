"""Execution of one batch of a benchmark: its queries, through every run that is not finished."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from apps.benchmarks.launching import UNFINISHED
from apps.benchmarks.measuring.batch_values import Measuring, keep_values
from apps.benchmarks.measuring.evaluating import truth_of
from apps.benchmarks.measuring.final_list import FinalList
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.planning import plan_of, stage_units
from apps.benchmarks.provenance import environment
from apps.benchmarks.running import isolated
from apps.benchmarks.running.open_indexes import OpenIndexes
from apps.benchmarks.running.outcomes import Noted, Outcome
from apps.benchmarks.running.pairs import Pairs
from apps.benchmarks.running.pinning import PinnedRerankers
from apps.benchmarks.running.preparing import prepare
from apps.benchmarks.running.rankings import final_lists
from apps.benchmarks.running.storing import store_final_lists, store_stage_lists
from apps.benchmarks.running.work import Work
from apps.benchmarks.sources import shared_lists, source_ids
from apps.datasets.models import Query
from apps.operations.handlers import Faults
from apps.operations.leasing import Lease
from apps.operations.models import Batch
from apps.retrieval.llms.servers import checked_llm, full_name
from benchbench.ir.planning.stages import AskStage, RerankStage, RewriteStage, Stage


def execute(batch: Batch, lease: Lease) -> None:
    """Search, store and measure the batch's queries. What it stores is committed at once, or not at all.

    The first batch may instead be the one that prepares what the others search.
    """
    if batch.payload.get("prepare"):
        prepare(batch, lease)
        return
    work = _work(batch, lease)
    benchmark, query_ids = work.benchmark, work.query_ids
    truth = truth_of(benchmark, benchmark.dataset_version, query_ids=query_ids)
    measuring = Measuring(benchmark, work.runs, truth)
    if benchmark.execution == Benchmark.Execution.ISOLATED:
        lists, outcomes, notes = isolated.run_queries(work, measuring)
    else:
        lists, outcomes, notes = shared_queries(work)
    lease.check()
    made_by = _made_by(work, outcomes)
    measuring.add(lists)
    with lease.commit({"made_by": made_by, "runs": measuring.told(), "notes": notes, **work.faults.as_result()}):
        store_final_lists(lists)
        keep_values(batch, measuring)
        store_stage_lists(work.plan, outcomes, query_ids, work.indexes, source_ids(benchmark), lists)


def _work(batch: Batch, lease: Lease) -> Work:
    """Return the work of a batch; its runs are evaluating from now on."""
    operation = batch.operation
    benchmark = Benchmark.objects.select_related("mapping", "dataset_version").get(pk=operation.subject_id)
    unfinished = benchmark.runs.filter(pk__in=operation.parameters["run_ids"], status__in=UNFINISHED)
    runs = list(unfinished.select_related("index"))
    keys = [str(run.pk) for run in runs]
    searched = list(benchmark.runs.filter(is_external=False).select_related("index").order_by("run_order"))
    whole = plan_of(searched)
    sources = {run.source_id for run in runs}
    waiting = (Run.Status.PENDING, Run.Status.INDEXING)
    benchmark.runs.filter(pk__in=keys, status__in=waiting).update(status=Run.Status.EVALUATING, started_at=Now())
    return Work(
        benchmark,
        runs,
        # Lists as deep as any run of the benchmark reads them, finished ones included: they are stored over what was
        # there.
        plan=whole.only(keys),
        lists=shared_lists([run for run in searched if run.source_id in sources], whole),
        queries=list(Query.objects.filter(pk__in=batch.payload["query_ids"]).order_by("pk")),
        indexes=OpenIndexes({run.config.get("index"): run.index for run in runs if run.index}),
        rerankers=PinnedRerankers(benchmark),
        lease=lease,
        # An error that might pass costs the batch an attempt; on its last one, it is recorded with the queries it hit.
        tolerant=batch.attempts >= settings.BENCHBENCH_MAX_ATTEMPTS,
        faults=Faults(),
        hung=batch.hung,
    )


def _made_by(work: Work, outcomes: dict[str, list[Outcome]]) -> dict[str, Any]:
    """Return the environment of this process, the rerankers that worked, and the language models that were asked."""
    reranks = [stage for stage in work.plan.stages if isinstance(stage, RerankStage)]
    worked = [stage for stage in reranks if any(not outcome.error for outcome in outcomes[stage.key])]
    return environment(
        (work.rerankers.load(stage.reranker, work.indexes[stage.index].index) for stage in worked),
        _llms(work),
    )


def _llms(work: Work) -> Iterator[str]:
    """Yield the language models that rewrite queries, or that strategies ask while they search, with their servers."""
    for stage in work.plan.stages:
        if isinstance(stage, RewriteStage):
            yield stage.llm
        elif isinstance(stage, AskStage):
            index = work.indexes[stage.index].index
            yield full_name(index.llm, checked_llm(index.llm_parameters))


def shared_queries(work: Work) -> tuple[list[FinalList], dict[str, list[Outcome]], Noted]:
    """Do every distinct stage of the runs once for all the queries."""
    done = 0

    def report(stage: Stage) -> None:
        nonlocal done
        done += stage_units(stage) * len(work.queries)
        work.lease.report(done)

    stages = work.stages(work.queries, pairs=Pairs(work.benchmark))
    outcomes = stages.run(work.plan, on_stage=report)
    lists = final_lists(work.lists, outcomes, work.query_ids, work.indexes, max_k=work.max_k)
    return list(lists), outcomes, stages.notes
