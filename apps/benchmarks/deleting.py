"""Deleting a benchmark with its runs and results."""

from django.db import transaction

from apps.benchmarks.measuring.again import require_unmeasured
from apps.benchmarks.models import Benchmark
from apps.operations.models import Status
from benchbench.database.rereading import read_again
from benchbench.deleting import delete_unused
from benchbench.errors import ConflictError


def delete_benchmark(benchmark: Benchmark) -> None:
    """Delete a benchmark, its runs, rankings and evaluations.

    Raises ConflictError while it runs or is measured again, and when one of its runs is a baseline. A start at the same
    time waits.
    """
    with transaction.atomic():
        locked = read_again(Benchmark.objects.select_for_update(), benchmark.pk)
        if locked.status == Status.RUNNING:
            raise ConflictError(f"The benchmark {benchmark.name!r} is running: cancel it before you delete it.")
        require_unmeasured(locked)
        delete_unused(locked)
