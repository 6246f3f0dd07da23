"""Finding the benchmark or run that a command names."""

from apps.benchmarks.models import Benchmark, Run
from benchbench.errors import BenchbenchError
from benchbench.names import find_named, rows_by_id


def find_subject(named: str, *, run: int | str | None = None) -> Run | Benchmark:
    """Return the run whose id is `named`, else the benchmark whose name or id it is, or its run of the number `run`."""
    there = rows_by_id(Run.objects.select_related("benchmark"), named)
    if there and run is not None:
        raise BenchbenchError("--run chooses among the runs of a benchmark: give the benchmark, or leave --run out.")
    if there:
        return there[0]
    benchmark = find_named(Benchmark, named)
    return find_run(benchmark, run) if isinstance(run, int) else benchmark


def find_run(benchmark: Benchmark, order: int) -> Run:
    """Return the run of a benchmark by its place in the matrix, from 1."""
    run = benchmark.runs.filter(run_order=order).first()
    if run is None:
        last = benchmark.total_runs
        raise BenchbenchError(f'The benchmark "{benchmark}" has no run {order}; they go from 1 to {last}.', field="run")
    return run
