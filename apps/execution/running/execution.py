"""Execution of one batch of a benchmark: its queries in all unfinished runs, shared or isolated."""

import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from threadpoolctl import threadpool_limits

from apps.datasets.models import Query
from apps.execution import process
from apps.execution.launching import UNFINISHED
from apps.execution.provisional import add_shares
from apps.execution.running.builds import find_builds
from apps.execution.running.engines import EngineSearch
from apps.execution.running.excluding import Exclusion
from apps.execution.running.finishing import load_benchmark
from apps.execution.running.latencies import Loop
from apps.execution.running.load import Loaded, LoadedRun
from apps.execution.running.open_indexes import OpenIndexes, prepare
from apps.execution.running.outcomes import BatchNotes, Outcome, add_notes
from apps.execution.running.pairs import Pairs, PinnedRerankers
from apps.execution.running.rankings import build_final_lists, build_stage_lists
from apps.execution.running.stages import Stages
from apps.mappings.truth import Truth, hash_truth
from apps.operations.handlers import Faults
from apps.operations.leasing import Lease
from apps.operations.models import Batch
from apps.records.lists.final import FinalList, store_final_lists, store_stage_lists
from apps.records.measuring.batch_values import measure_lists, store_values
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Benchmark, Run
from apps.records.models.batches import BatchPayload, BatchReport, BenchmarkWork, dump_shares
from apps.records.planning import (
    SharedList,
    build_shared_lists,
    count_query_units,
    count_units,
    load_source_ids,
    plan_of,
)
from apps.records.provenance import build_environment
from apps.retrieval.llms.answers import bypass_answers, store_no_answers
from apps.retrieval.llms.servers import complete_llm, name_llm
from benchbench.database.ordered import update_in_order
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import AskStage, RerankStage, RewriteStage, Stage
from benchbench.reading.strict_json import attributes

REPORT_SECONDS = 2  # least time between reports, since reporting disturbs the timing
REPORTING_SHARE = 0.1  # most of an isolated batch's time that goes to reports, each of which measures all lists
WAITING = (Run.Status.PENDING, Run.Status.INDEXING)
_warm_runs: deque[str] = deque(maxlen=256)  # runs whose language model this process has warmed up
process.add(_warm_runs.clear)


@dataclass(frozen=True, slots=True)
class Work:
    """One batch of a benchmark. `plan` covers its unfinished runs, at the depths that all runs of the benchmark need.

    `lists` are the final lists of the runs; each names every run that shares it, finished or not. If `tolerant`,
    temporary errors are recorded with their queries and not raised. `faults` collects tracebacks. `hung` says where a
    model did not answer in an earlier attempt, as `Batch.hung`. `engines` asks search engines.
    """

    benchmark: Benchmark
    runs: Sequence[Run]
    plan: Plan
    lists: Sequence[SharedList]
    queries: Sequence[Query]
    indexes: OpenIndexes
    rerankers: PinnedRerankers
    lease: Lease
    tolerant: bool
    faults: Faults
    hung: Mapping[str, Mapping[str, str]]
    engines: EngineSearch
    exclusion: Exclusion
    notes: BatchNotes = field(default_factory=dict)

    @property
    def query_ids(self) -> list[int]:
        return [query.pk for query in self.queries]

    @property
    def max_k(self) -> int:
        return int(max(self.benchmark.k_values))

    def build_stages(self, queries: Sequence[Query], **options: Any) -> Stages:
        """Return the `Stages` for some of the queries; `options` override its defaults."""
        facts = attributes(self, "tolerant", "faults", "hung", "exclusion")
        defaults = {"ask_engine": partial(self.engines.ask, self.notes), "on_part": self.lease.check}
        return Stages(queries, self.indexes, self.rerankers, **facts | defaults | options)


def execute(batch: Batch, lease: Lease) -> None:
    """Search, measure and store the batch's queries, in one transaction at the end.

    The preparing batch makes the missing indexes instead.
    """
    payload = BatchPayload.from_batch(batch)
    if payload.prepare:
        prepare(batch, lease)
        return
    work = _load_work(batch, payload, lease)
    benchmark, query_ids = work.benchmark, work.query_ids
    truth = load_truth(benchmark, benchmark.dataset_version, query_ids=query_ids)
    is_isolated = benchmark.execution == Benchmark.Execution.ISOLATED
    if is_isolated:
        _warm_up(work)
    # One thread per product of NumPy, as in servers: several wait for each other and other processes. Torch keeps its
    # threads: their number changes last bits of vectors. The limit holds for libraries that the warm-up loaded, too.
    with threadpool_limits(1, "blas") if is_isolated else nullcontext():
        lists, outcomes, notes = run_isolated(work, truth) if is_isolated else run_shared(work)
        lease.check()
        made_by, builds = _build_environment(work, outcomes), find_builds(work.plan, work.indexes)
    values, hash_of_truth = measure_lists(benchmark, work.runs, truth, lists), hash_truth(truth)
    report = BatchReport(made_by=made_by, builds=builds, runs=values.compute_shares(), notes=notes)
    with lease.commit({**report.as_dict(), **work.faults.as_result()}):
        if payload.runs is not None:  # other batches store lists of the same queries
            _lock_lists(benchmark)
        store_final_lists(lists)
        store_values(
            batch, benchmark.measures, values.query_ids, values.values_by_run, hash_of_truth, was_searched=True
        )
        sources = load_source_ids(benchmark)
        store_stage_lists(build_stage_lists(work.plan, outcomes, query_ids, work.indexes, sources, lists), query_ids)
        add_shares(batch, report.runs, benchmark.dataset_version.query_count)


def _lock_lists(benchmark: Benchmark) -> None:
    """Let one batch at a time store the lists of stages that runs share, until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"lists {benchmark.pk}"])


def _load_work(batch: Batch, payload: BatchPayload, lease: Lease) -> Work:
    """Load the work of a batch, and set its runs to evaluating."""
    benchmark = load_benchmark(batch.operation)
    run_ids = set(BenchmarkWork.from_operation(batch.operation).run_ids if payload.runs is None else payload.runs)
    internal_runs = list(benchmark.runs.filter(is_external=False).select_related("index").order_by("run_order"))
    runs = [run for run in internal_runs if str(run.pk) in run_ids and run.status in UNFINISHED]
    keys = [str(run.pk) for run in runs]
    full_plan = plan_of(internal_runs)
    sources = {run.source_id for run in runs}
    if {run.status for run in runs}.intersection(WAITING):  # of several batches at once, each sets them
        started = benchmark.runs.filter(pk__in=keys, status__in=WAITING)
        update_in_order(started, status=Run.Status.EVALUATING, started_at=Now())
    return Work(
        benchmark,
        runs,
        # Lists must be deep enough for all runs, also finished ones, because they replace the stored lists.
        plan=full_plan.select(keys),
        lists=build_shared_lists([run for run in internal_runs if run.source_id in sources], full_plan),
        queries=list(Query.objects.filter(pk__in=payload.query_ids).order_by("pk")),
        indexes=OpenIndexes({run.configuration.index: run.index for run in runs if run.index}),
        rerankers=PinnedRerankers(benchmark),
        lease=lease,
        # A temporary error costs the batch an attempt; on the last one it is recorded with its queries.
        tolerant=batch.attempts >= settings.BENCHBENCH_MAX_ATTEMPTS,
        faults=Faults(),
        hung=batch.hung,
        engines=EngineSearch(benchmark.mapping.collection, benchmark.created_at, lease.check, benchmark.exclude_self),
        exclusion=Exclusion.from_benchmark(benchmark),
    )


def _build_environment(work: Work, outcomes: dict[str, list[Outcome]]) -> dict[str, object]:
    """Return the environment of this process, with the rerankers that worked and the language models of the plan."""
    reranks = [stage for stage in work.plan.stages if isinstance(stage, RerankStage)]
    worked = [stage for stage in reranks if any(not outcome.error for outcome in outcomes[stage.key])]
    llms = [stage.llm for stage in work.plan.stages if isinstance(stage, RewriteStage)]
    llm_indexes = (work.indexes[stage.index].index for stage in work.plan.stages if isinstance(stage, AskStage))
    llms += [name_llm(index.llm, complete_llm(index.llm_parameters)) for index in llm_indexes]
    rerankers = [work.rerankers.load(stage.reranker, work.indexes[stage.index].index) for stage in worked]
    return build_environment(rerankers, llms)


def run_shared(work: Work) -> tuple[list[FinalList], dict[str, list[Outcome]], BatchNotes]:
    """Run every distinct stage of the runs once for all queries."""
    done_units = 0

    def report(stage: Stage) -> None:
        nonlocal done_units
        done_units += count_units(stage) * len(work.queries)
        work.lease.report(done_units)

    stages = work.build_stages(work.queries, pairs=Pairs(work.benchmark))
    outcomes = stages.run(work.plan, on_stage=report)
    lists = build_final_lists(work.lists, outcomes, work.query_ids, work.indexes, max_k=work.max_k)
    add_notes(stages.notes, work.notes)
    return list(lists), outcomes, stages.notes


def run_isolated(work: Work, truth: Truth) -> tuple[list[FinalList], dict[str, list[Outcome]], BatchNotes]:
    """Run each (repetition, query, run) alone, with runs shuffled per query by the benchmark's seed, after `_warm_up`.

    The payload `alone` keeps other batches off the host. Exact counterparts of approximate runs are searched in the
    first repetition only. Between queries report the provisional means by `truth`, at most every REPORT_SECONDS and in
    at most REPORTING_SHARE of the time: a batch may take long, and its runs have no other values before it ends. Runs
    with a rate follow, one at a time.
    """
    isolated = _Isolated(work, truth)
    alone = [str(run.pk) for run in work.runs if not run.configuration.rate]
    loaded = {str(run.pk): run.configuration.rate for run in work.runs if run.configuration.rate}
    isolated.report_at = time.monotonic() + REPORT_SECONDS
    for repetition in range(1, work.benchmark.runs_per_query + 1):
        for number, query in enumerate(work.queries) if alone else ():
            keys = [*alone]
            random.Random(f"{work.benchmark.seed}:{query.key}:{repetition}").shuffle(keys)
            for key in keys:
                stages = work.build_stages([query], encode_afresh=True)
                with bypass_answers() if repetition > 1 else nullcontext():  # a cached answer would repeat the first
                    stages.run(isolated.plans[key].select([key], truth=repetition == 1))
                isolated.add(key, number, repetition, Loaded(stages.outcomes, stages.notes))
            isolated.report()
        for key, rate in loaded.items():
            isolated.run_loaded(key, rate, repetition)
    return isolated.lists, isolated.outcomes, work.notes


@dataclass(eq=False)
class _Isolated:
    """Lists of the runs of a batch so far, query by query."""

    work: Work
    truth: Truth
    lists: list[FinalList] = field(default_factory=list)
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    done_units: int = 0
    report_at: float = 0.0

    def __post_init__(self) -> None:
        self.plans = {str(run.pk): plan_of([run]) for run in self.work.runs}
        self.shared = {str(run.pk): build_shared_lists([run], self.plans[str(run.pk)])[0] for run in self.work.runs}

    def add(self, key: str, number: int, repetition: int, loaded: Loaded, **timings: float | None) -> None:
        """Add the outcomes of a run for one query. `timings` replace those of its stages."""
        work, shared, query_ids = self.work, [self.shared[key]], [self.work.query_ids[number]]
        options = {"max_k": work.max_k, "repetition": repetition}
        for final in build_final_lists(shared, loaded.outcomes, query_ids, work.indexes, **options):
            facts = replace(final.facts, timings={**final.facts.timings, **timings})
            self.lists.append(replace(final, facts=facts))
        self.done_units += count_query_units(self.plans[key])
        work.lease.report(self.done_units)
        _merge(self.outcomes, loaded.outcomes, number, repetition)
        add_notes(work.notes, loaded.notes if repetition == 1 else {})

    def report(self) -> None:
        """Report the provisional means, if it is time."""
        if (started := time.monotonic()) < self.report_at:
            return
        values = measure_lists(self.work.benchmark, self.work.runs, self.truth, self.lists)
        self.work.lease.report(self.done_units, {"runs": dump_shares(values.compute_shares())}, always=True)
        ended = time.monotonic()
        self.report_at = ended + max(REPORT_SECONDS, (ended - started) / REPORTING_SHARE)

    def run_loaded(self, key: str, rate: float, repetition: int) -> None:
        """Run all queries of the batch in an open loop."""
        work, benchmark = self.work, self.work.benchmark
        loop = Loop.build(key, rate, len(work.queries), seed=f"{benchmark.seed}:{repetition}")
        arguments = self.plans[key], work.queries, work.indexes, work.engines, work.build_stages
        run = LoadedRun(*arguments, benchmark.primary_k)
        for number, loaded in enumerate(run.search(loop, work.notes, check=work.lease.check)):
            self.add(key, number, repetition, loaded, total_ms=loaded.latency_ms)


def _warm_up(work: Work) -> None:
    """Run the first query once, untimed, to fill caches and load models, also the encoder of a stored vector.

    A process warms up the language model of a run once, as it may cost money.
    """
    with store_no_answers():  # or the first timed query would reuse an answer timed on a cold model
        for run in [run for run in work.runs if str(run.pk) not in _warm_runs]:
            key, plan = str(run.pk), plan_of([run])
            options = {"tolerant": True, "faults": Faults(), "encode_afresh": True}
            work.build_stages(work.queries[:1], **options).run(plan.select([key], truth=False))
            if any(isinstance(stage, AskStage | RewriteStage) for stage in plan.stages):
                _warm_runs.append(key)


def _merge(outcomes: dict[str, list[Outcome]], new: dict[str, list[Outcome]], number: int, repetition: int) -> None:
    """Add the lists of the first repetition to `outcomes`, in the form of shared execution: {stage key: [per query]}.

    Runs of different depth share the key of an exact stage; keep the longest list.
    """
    for key, (alone,) in new.items() if repetition == 1 else ():
        lists = outcomes.setdefault(key, [])
        if len(lists) == number:
            lists.append(alone)
        elif not alone.error and (lists[number].error or len(alone.value) > len(lists[number].value)):
            lists[number] = alone
