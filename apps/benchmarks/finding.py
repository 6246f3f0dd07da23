"""Finding the benchmark or run that a command names."""

from uuid import UUID

from apps.benchmarks.models import Benchmark, Run
from benchbench.errors import BenchbenchError

SHOWN = 10


def find_benchmark(named: str) -> Benchmark:
    """Return the benchmark whose name or id is `named`; raise a sentence where there is none, or more than one."""
    found = list(Benchmark.objects.filter(name=named)[:2]) or _by_id(named)
    if len(found) == 1:
        return found[0]
    if found:
        raise BenchbenchError(f"Several benchmarks are called {named!r}: give the benchmark's id.")
    names = list(Benchmark.objects.values_list("name", flat=True)[: SHOWN + 1])
    there = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise BenchbenchError(
        f"No benchmark is called {named!r}; there is {there or 'none yet: `manage.py run_benchmark` makes one'}."
    )


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


def _by_id(named: str) -> list[Benchmark]:
    try:
        return list(Benchmark.objects.filter(pk=UUID(named)))
    except ValueError:
        return []
