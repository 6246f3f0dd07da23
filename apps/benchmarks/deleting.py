"""Deleting a benchmark."""

from apps.benchmarks.models import Benchmark
from apps.operations.models import Status
from benchbench.deleting import delete_unused
from benchbench.errors import ConflictError


def delete_benchmark(benchmark: Benchmark) -> None:
    """Delete a benchmark with its runs, rankings and evaluations; mapping, dataset and collection stay.

    Raises ConflictError while it runs, and where one of its runs is a baseline.
    """
    benchmark.refresh_from_db()
    if benchmark.status == Status.RUNNING:
        raise ConflictError(f'The benchmark "{benchmark}" is running: cancel it first.')
    delete_unused(benchmark)
