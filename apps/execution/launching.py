"""Launching a benchmark in batches of queries, in one transaction; and retrying, cancelling and deleting it."""

import math
from collections.abc import Iterator, Sequence

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Length, Now

from apps.collections.models import Collection
from apps.collections.states import record_state
from apps.execution.defining.choosing import find_words_problem, is_current
from apps.execution.defining.creating import require_current, require_searched
from apps.operations.launching import cancel_operation, start_operation
from apps.operations.models import ALONE, MAY_RUN_TWICE, BatchSpec, Operation, Priority, Status
from apps.records.lists.reading import require_rankings
from apps.records.measuring.again import require_unmeasured
from apps.records.models import Benchmark, MeansSoFar, Run, StageList
from apps.records.models.batches import PREPARE
from apps.records.planning import (
    MAX_BATCH,
    add_sources,
    count_query_units,
    estimate_costs,
    estimate_work,
    needs_preparing,
    plan_of,
)
from apps.retrieval.availability import (
    describe_missing,
    list_index_requirements,
    list_run_requirements,
    require_available,
)
from apps.retrieval.encoders.encoding import compute_uncached_share
from apps.retrieval.models import Index
from benchbench.database.failures import read_again, refresh
from benchbench.deleting import delete_unused
from benchbench.errors import ConflictError
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import AskStage, EncodeStage, EngineStage, RewriteStage

UNFINISHED = (Run.Status.PENDING, Run.Status.INDEXING, Run.Status.EVALUATING, Run.Status.CANCELLED)
INDEXES = ("index__chunk_set", "index__collection", "index__lexical_index__chunk_set")
BATCHES = 8  # at least in a short benchmark, so that it shows progress and two workers can share it
MIN_SHARE = 0.5  # of BENCHBENCH_BATCH_SECONDS; in shorter batches the fixed cost would be noticeable


def launch(benchmark: Benchmark, *, by: User | None = None, priority: str = Priority.NORMAL) -> Operation:
    """Start the unfinished runs of a benchmark. Skips completed and failed runs, and queries with results.

    The operation counts against the quota of `by`, by default the benchmark's owner. Raises ConflictError if the
    benchmark is running, has nothing left to do, or its mapping or an index is not ready. Raises QuotaError, and
    PriorityError for a high priority unless `by` is a superuser.
    """
    require_searched(benchmark, "start")
    require_current(benchmark.mapping)
    with transaction.atomic():
        started = (
            Benchmark.objects.filter(pk=benchmark.pk)
            .exclude(status=Status.RUNNING)
            .update(status=Status.RUNNING, started_at=Now(), completed_at=None)
        )
        if not started:
            raise ConflictError(f"The benchmark {benchmark.name!r} is already running.")
        _record_state(benchmark)
        require_unmeasured(benchmark)
        require_rankings(read_again(Benchmark.objects.all(), benchmark.pk))
        add_sources(benchmark)
        unfinished = benchmark.runs.filter(status__in=UNFINISHED, is_external=False)
        runs = list(unfinished.select_related(*INDEXES))
        if not runs:
            raise ConflictError(
                f"Every run of {benchmark.name!r} has completed or failed. Retry the failed runs, or create a new "
                "benchmark."
            )
        _require_indexes(runs)
        benchmark.runs.filter(pk__in=[run.pk for run in runs]).update(
            status=Run.Status.PENDING, error_message="", started_at=None, completed_at=None
        )
        plan = plan_of(runs)
        operation = start_operation(
            Operation.Kind.BENCHMARK,
            subject_id=benchmark.pk,
            by=by or benchmark.owner,
            queue="gpu",
            batches=[(PREPARE, 0)] if needs_preparing(plan) else split_batches(benchmark, runs, plan),
            parameters={"run_ids": [str(run.pk) for run in runs]},
            planned_seconds=_estimate_seconds(benchmark, runs, plan),
            priority=priority,
        )
        MeansSoFar.objects.create(operation=operation)
        Benchmark.objects.filter(pk=benchmark.pk).update(operation=operation)
    refresh(benchmark)
    return operation


def _estimate_seconds(benchmark: Benchmark, runs: Sequence[Run], plan: Plan) -> float:
    """Return the seconds of all queries in these runs on one worker, as the preview states them."""
    costs = estimate_costs(plan, {run.configuration.index: run.index for run in runs if run.index})
    configurations = {str(run.pk): run.configuration for run in runs}
    queries, repetitions = benchmark.dataset_version.query_count, benchmark.runs_per_query
    return round(estimate_work(plan, configurations, costs, queries, benchmark.execution, repetitions)[1], 3)


def _record_state(benchmark: Benchmark) -> None:
    """Record the state of the collection that a benchmark is about to search, unless it has results in another."""
    collection = benchmark.mapping.collection
    has_results = StageList.objects.filter(source__benchmark=benchmark).exists()
    if collection.kind == Collection.Kind.EXTERNAL or (has_results and benchmark.state is not None):
        return  # ids of documents are only ever added
    state = record_state(collection, benchmark.mapping.collection_fingerprint)
    if state is None:
        require_current(benchmark.mapping)
        raise ConflictError(f'The documents of "{collection}" are changing: launch the benchmark again afterwards.')
    Benchmark.objects.filter(pk=benchmark.pk).update(state=state.number)


def _require_indexes(runs: Sequence[Run]) -> None:
    for run in runs:
        if not run.configuration.needs_index:
            continue
        if run.index is None or run.index.status != Index.Status.READY:
            raise ConflictError(f"The index of run {run.run_order} ({run.label}) is not ready: build it first.")
        _require_searchable(run.index, run.configuration)
        if not is_current(run.index):
            raise ConflictError(
                f"The index {run.index.name!r} of run {run.run_order} was built before the documents of its "
                "collection changed. Build a new version of it, and create a new benchmark."
            )


def _require_searchable(index: Index, configuration: Configuration) -> None:
    """Raise UnavailableError for a part that is missing here, ConflictError for words of another version."""
    require_available(index, configuration)
    if problem := find_words_problem(index, configuration):
        raise ConflictError(problem)


def split_batches(benchmark: Benchmark, runs: Sequence[Run], plan: Plan | None = None) -> Iterator[BatchSpec]:
    """Yield batches of the queries without a result in some run, of about BENCHBENCH_BATCH_SECONDS each.

    A batch holds queries of similar length, because a model pads its inputs to the longest. Batches are ordered by
    their first query, so that provisional means do not cover long queries only. If indexes must be made first, the
    preparing batch calls this function. `plan` is the plan of the runs, if known.

    An open loop is one batch, since queues build up over its length. Each run with a rate has batches of its own, which
    name it, so that a killed worker loses one loop and not all.
    """
    loaded = [run for run in runs if run.configuration.rate]
    if unloaded := [run for run in runs if not run.configuration.rate]:
        naming = {"runs": [str(run.pk) for run in unloaded]} if loaded else {}
        for payload, units in _split_queries(
            benchmark, unloaded, plan_of(unloaded) if loaded or plan is None else plan
        ):
            yield payload | naming, units
    for run in loaded:
        yield from _split_loops(benchmark, run)


def _split_queries(benchmark: Benchmark, runs: Sequence[Run], plan: Plan) -> Iterator[BatchSpec]:
    """Yield the batches of runs without a rate."""
    queries = _list_unanswered(benchmark, runs)
    isolated = benchmark.execution == Benchmark.Execution.ISOLATED
    plans = [plan_of([run]) for run in runs] * benchmark.runs_per_query if isolated else [plan]
    indexes = {run.configuration.index: run.index for run in runs if run.index}
    seconds = estimate_costs(plan, indexes)
    if not isolated:  # isolated execution encodes every text again to time it
        texts = list(benchmark.dataset_version.queries.filter(pk__in=queries).values_list("text", flat=True))
        for stage in (each for each in plan.stages if isinstance(each, EncodeStage) and each.wording is None):
            seconds[stage.key] *= compute_uncached_share(indexes[stage.index], texts)
    size = choose_batch_size(len(queries), sum(seconds[stage.key] for planned in plans for stage in planned.stages))
    units = sum(map(count_query_units, plans))
    groups = [sorted(queries[start : start + size]) for start in range(0, len(queries), size)]
    asks = any(isinstance(stage, AskStage | RewriteStage | EngineStage) for stage in plan.stages)
    for group in sorted(groups):
        yield {"query_ids": group, ALONE: isolated, MAY_RUN_TWICE: not (isolated or asks)}, units * len(group)


def _split_loops(benchmark: Benchmark, run: Run) -> Iterator[BatchSpec]:
    """Yield the batches of a run with a rate."""
    queries = _list_unanswered(benchmark, [run])
    units = count_query_units(plan_of([run])) * benchmark.runs_per_query
    for group in sorted(sorted(queries[start : start + MAX_BATCH]) for start in range(0, len(queries), MAX_BATCH)):
        payload = {"query_ids": group, "runs": [str(run.pk)], ALONE: True, MAY_RUN_TWICE: False}
        yield payload, units * len(group)


def choose_batch_size(queries: int, seconds: float) -> int:
    """Return the number of queries in each batch, given `queries` that cost `seconds` each.

    A batch takes at most BENCHBENCH_BATCH_SECONDS. A short benchmark is cut into up to BATCHES batches, each at least
    MIN_SHARE of that time. Several batches are an even number, so that two workers finish together.
    """
    in_longest = queries * seconds / max(settings.BENCHBENCH_BATCH_SECONDS, 1e-6)
    target = max(in_longest, min(BATCHES, in_longest / MIN_SHARE), queries / MAX_BATCH)
    batches = 2 * math.ceil(target / 2) if target > 1 else 1
    batches = min(batches, max(queries, 1))
    return max(1, math.ceil(queries / batches))


def _list_unanswered(benchmark: Benchmark, runs: Sequence[Run]) -> list[int]:
    """Return the queries without a result in some run, longest texts first."""
    repetitions = benchmark.runs_per_query if benchmark.execution == Benchmark.Execution.ISOLATED else 1
    sources = {run.source_id for run in runs}
    answered = (
        StageList.objects.filter(source__in=sources, lengths__isnull=False, repetition__lte=repetitions)
        .values("query_id")
        .annotate(lists=Count("pk"))
        .filter(lists=len(sources) * repetitions)
        .values_list("query_id", flat=True)
    )
    queries = benchmark.dataset_version.queries.exclude(pk__in=answered)
    return list(queries.order_by(Length("text").desc(), "pk").values_list("pk", flat=True))


def retry(benchmark: Benchmark, *, by: User | None = None) -> Operation:
    """Reset failed runs and failed queries of completed runs, and launch the benchmark.

    Skips runs whose index is not ready, or has outdated words. Raises ConflictError if the benchmark is running,
    nothing failed, or no failed run has a ready index. Raises UnavailableError if this installation cannot search the
    indexes.
    """
    require_searched(benchmark, "retry")
    with transaction.atomic():
        locked = read_again(Benchmark.objects.select_for_update(), benchmark.pk)
        if locked.status == Status.RUNNING:
            raise ConflictError(f"The benchmark {benchmark.name!r} is running: wait for it, or cancel it first.")
        failed = benchmark.runs.filter(status=Run.Status.FAILED) | benchmark.runs.filter(failed_queries__gt=0)
        if not failed.exists():
            raise ConflictError(f"The benchmark {benchmark.name!r} has no failed runs to retry.")
        runs = list(failed.select_related(*INDEXES).filter(Q(index__status=Index.Status.READY) | Q(index=None)))
        built = [(run.pk, run.index, run.configuration) for run in runs if run.index]
        run_ids = [run.pk for run in runs if run.index is None] + [
            pk
            for pk, index, config in built
            if not describe_missing(list_index_requirements(index) | list_run_requirements(index, config))
            and not find_words_problem(index, config)
        ]
        if not run_ids:
            for _, index, config in built:
                _require_searchable(index, config)
            raise ConflictError(
                f"The failed runs of {benchmark.name!r} have no ready index: build their indexes, then retry."
            )
        StageList.objects.filter(source__runs__in=run_ids).exclude(error="").delete()
        Run.objects.filter(pk__in=run_ids).update(status=Run.Status.PENDING, error_message="", failed_queries=0)
        return launch(benchmark, by=by)


def cancel(benchmark: Benchmark) -> None:
    """Cancel a running benchmark. Launch it again to resume its unfinished runs.

    Also cancels measuring again; the runs then keep their old values. Raises ConflictError if neither is active.
    """
    refresh(benchmark)
    operation = Operation.active_on(benchmark)
    if operation is None:
        raise ConflictError(
            f"The benchmark {benchmark.name!r} is {benchmark.status}: only a running benchmark can be cancelled."
        )
    cancel_operation(operation)
    refresh(benchmark)


def delete_benchmark(benchmark: Benchmark) -> None:
    """Delete a benchmark, its runs, rankings and evaluations. A concurrent launch waits.

    Raises ConflictError if the benchmark is running or being measured again, or one of its runs is a baseline.
    """
    with transaction.atomic():
        locked = read_again(Benchmark.objects.select_for_update(), benchmark.pk)
        if locked.status == Status.RUNNING:
            raise ConflictError(f"The benchmark {benchmark.name!r} is running: cancel it before you delete it.")
        require_unmeasured(locked)
        delete_unused(locked)
