"""Benchmarks and indexes for tests, made by the use cases, of options by keyword."""

from typing import Any

from apps.execution.defining import creating
from apps.execution.defining.creating import BenchmarkOptions
from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from apps.retrieval.indexing import build_index
from apps.retrieval.models import Index

EXTRAS = ("owner", "version", "indexes", "manifest", "experiment")


def create_benchmark(mapping: Mapping, **declared: Any) -> Benchmark:
    extras = {name: declared.pop(name) for name in EXTRAS if name in declared}
    return creating.create_benchmark(mapping, BenchmarkOptions(**declared), **extras)


def run_benchmark(mapping: Mapping, **declared: Any) -> Benchmark:
    """Create a benchmark and run it to its end."""
    return finish(create_benchmark(mapping, **declared))


def finish(benchmark: Benchmark) -> Benchmark:
    """Run a benchmark to its end."""
    wait(launch(benchmark))
    benchmark.refresh_from_db()
    return benchmark


def list_warnings(run: Run) -> list[str]:
    """Return the warnings of a run but that of ties, which the keyword encoder makes."""
    return [warning for warning in run.warnings if "score of a neighbour" not in warning]


def build(index: Index) -> Index:
    """Build an index to its end."""
    wait(build_index(index))
    index.refresh_from_db()
    return index
