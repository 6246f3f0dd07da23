"""Retrying the failed runs of a benchmark."""

from django.contrib.auth.models import User
from django.db import transaction

from apps.benchmarks.launching import launch, require_searched
from apps.benchmarks.models import Benchmark, Run, StageList
from apps.operations.models import Operation, Status
from apps.retrieval.availability import lack, parts_of, parts_of_run, require_available
from apps.retrieval.models import Index
from benchbench.database.rereading import read_again
from benchbench.errors import ConflictError
from benchbench.ir.planning.configuration import Configuration

READY = Index.Status.READY


def retry(benchmark: Benchmark, *, by: User | None = None) -> Operation:
    """Reset failed runs, and queries that failed in completed runs, and start what is then unfinished.

    A run whose index could not be built stays as it is until that is ready. Raises ConflictError while the benchmark
    runs, when nothing failed, and when an index is all that is missing; UnavailableError where it never can be here.
    """
    require_searched(benchmark, "retry")
    with transaction.atomic():
        locked = read_again(Benchmark.objects.select_for_update(), benchmark.pk)
        if locked.status == Status.RUNNING:
            raise ConflictError(f"The benchmark {benchmark.name!r} is running: wait for it, or cancel it first.")
        failed = benchmark.runs.filter(status=Run.Status.FAILED) | benchmark.runs.filter(failed_queries__gt=0)
        if not failed.exists():
            raise ConflictError(f"No run of {benchmark.name!r} has failed: there is nothing to retry.")
        runs = failed.select_related("index")
        indexes = {run.pk: run.index for run in runs if run.index and run.index.status == READY}
        configurations = {run.pk: Configuration.from_dict(run.config) for run in runs}
        run_ids = [
            pk for pk, index in indexes.items() if not lack(parts_of(index) | parts_of_run(index, configurations[pk]))
        ]
        if not run_ids:
            for pk, index in indexes.items():
                require_available(index, configurations[pk])
            raise ConflictError(
                f"The failed runs of {benchmark.name!r} have no index that is ready: build their indexes, then retry."
            )
        StageList.objects.filter(source__runs__in=run_ids).exclude(error="").delete()
        Run.objects.filter(pk__in=run_ids).update(status=Run.Status.PENDING, error_message="", failed_queries=0)
        return launch(benchmark, by=by)
