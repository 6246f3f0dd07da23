"""Finding the benchmark or run that a command names."""

from apps.benchmarks.models import Benchmark, Run
from benchbench.errors import BenchbenchError
from benchbench.finding import find_named, rows_by_id


def find_subject(named: str) -> Run | Benchmark:
    """Return the run whose id is `named`, else the benchmark whose name or id it is."""
    run = rows_by_id(Run.objects.select_related("benchmark"), named)
    return run[0] if run else find_named(Benchmark, named)


def find_run(benchmark: Benchmark, order: int) -> Run:
    """Return the run of a benchmark by its place in the matrix, from 1."""
    run = benchmark.runs.filter(run_order=order).first()
    if run is None:
        last = benchmark.total_runs
        raise BenchbenchError(f'The benchmark "{benchmark}" has no run {order}; they go from 1 to {last}.', field="run")
    return run
