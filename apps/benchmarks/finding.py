"""Finding the benchmark or run that a command names."""

from uuid import UUID

from django.contrib.auth.models import User

from apps.benchmarks.models import Benchmark, Run
from benchbench.errors import BenchbenchError
from benchbench.finding import find_named


def find_benchmark(named: str, *, owner: User | None = None) -> Benchmark:
    """Return the benchmark whose name or id is `named`, as `find_named` does."""
    return find_named(Benchmark, named, made_by="run_benchmark", owner=owner)


def find_subject(named: str) -> Run | Benchmark:
    """Return the run whose id is `named`, else the benchmark whose name or id it is."""
    try:
        run = Run.objects.filter(pk=UUID(named)).select_related("benchmark").first()
    except ValueError:
        run = None
    return run or find_benchmark(named)


def find_run(benchmark: Benchmark, order: int) -> Run:
    """Return the run of a benchmark by its place in the matrix, from 1."""
    run = benchmark.runs.filter(run_order=order).first()
    if run is None:
        last = benchmark.total_runs
        raise BenchbenchError(f'The benchmark "{benchmark}" has no run {order}; they go from 1 to {last}.', field="run")
    return run
