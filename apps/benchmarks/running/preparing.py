"""The first batch of a benchmark that searches what is made on demand: indexes, collections of stores, full text."""

import time
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db.models.functions import Now

from apps.benchmarks.launching import UNFINISHED, query_batches
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.planning import is_prepared, plan_of
from apps.operations.handlers import Faults
from apps.operations.leasing import Lease, Stopped
from apps.operations.models import Batch
from apps.retrieval.models import Index
from apps.retrieval.search.arms import make_arm
from apps.retrieval.search.full_text import make_full_text
from benchbench.errors import BenchbenchError, UnfitWorkerError, told
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import DenseStage, Stage


def prepare(batch: Batch, lease: Lease) -> None:
    """Make what is missing, before any query is timed, and add the batches of queries.

    What cannot be made fails the runs that need it, and no others. The batch's result holds, by stage key, what was
    made and how it will be searched (`prepared`).
    """
    operation = batch.operation
    benchmark = Benchmark.objects.select_related("dataset_version").get(pk=operation.subject_id)
    runs = list(
        benchmark.runs.filter(pk__in=operation.parameters["run_ids"], status__in=UNFINISHED).select_related("index")
    )
    plan = plan_of(runs)
    needing = _needing(plan, runs)
    waiting = {run.pk for _, mine in needing.values() for run in mine}
    benchmark.runs.filter(pk__in=waiting, status=Run.Status.PENDING).update(
        status=Run.Status.INDEXING, started_at=Now()
    )
    prepared: dict[str, Any] = {}
    failed: dict[Run, str] = {}
    faults = Faults()
    for key, (stage, mine) in needing.items():
        lease.check()
        try:
            with lease.interrupting():
                prepared[key] = _prepare(mine[0].index, stage)
        except (Stopped, UnfitWorkerError):
            raise
        except Exception as error:
            spoken = isinstance(error, BenchbenchError)
            if not spoken and batch.attempts < settings.BENCHBENCH_MAX_ATTEMPTS:
                raise
            message = told(error)
            faults.add(message, error)
            failed |= dict.fromkeys(mine, message)
    remaining = [run for run in runs if run not in failed]
    rest = plan.only([str(run.pk) for run in remaining])
    result = {"prepared": prepared, **faults.as_result()}
    with lease.commit(result, batches=query_batches(benchmark, remaining, rest) if remaining else ()):
        for run, message in failed.items():
            benchmark.runs.filter(pk=run.pk).update(
                status=Run.Status.FAILED, error_message=f"Its index could not be made: {message}", completed_at=Now()
            )


def _needing(plan: Plan, runs: Sequence[Run]) -> dict[str, tuple[Stage, list[Run]]]:
    """The stages that search what must be made, by key, and the runs that need each."""
    by_key = {str(run.pk): run for run in runs}
    needing: dict[str, tuple[Stage, list[Run]]] = {}
    for planned in plan.runs:
        for stage in filter(is_prepared, planned.stages):
            needing.setdefault(stage.key, (stage, []))[1].append(by_key[planned.run_key])
    return needing


def _prepare(index: Index | None, stage: Stage) -> dict[str, Any]:
    """Make what the stage searches; return the facts about it. Raises AnnIndexError, StoreError, LexicalIndexError."""
    assert index is not None
    assert index.chunk_set is not None
    if isinstance(stage, DenseStage):
        return make_arm(index, Ann.parse(stage.ann), stage.depth)
    started = time.perf_counter()
    words = make_full_text(index.chunk_set)
    return {"bytes": words.size_bytes, "seconds": round(time.perf_counter() - started, 3)}
