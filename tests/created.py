"""Benchmarks and indexes for tests, made by the use cases, of options by keyword."""

from typing import Any

from apps.benchmarks.defining import creating
from apps.benchmarks.defining.creating import BenchmarkOptions
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.indexing import build_index
from apps.retrieval.models import Index

BESIDES = ("owner", "version", "indexes", "manifest", "experiment")


def create_benchmark(mapping: Mapping, **stated: Any) -> Benchmark:
    besides = {name: stated.pop(name) for name in BESIDES if name in stated}
    return creating.create_benchmark(mapping, BenchmarkOptions(**stated), **besides)


def run_benchmark(mapping: Mapping, **stated: Any) -> Benchmark:
    """Create a benchmark and run it to its end."""
    return finish(create_benchmark(mapping, **stated))


def finish(benchmark: Benchmark) -> Benchmark:
    """Run a benchmark to its end."""
    wait(launch(benchmark))
    benchmark.refresh_from_db()
    return benchmark


def build(index: Index) -> Index:
    """Build an index to its end."""
    wait(build_index(index))
    index.refresh_from_db()
    return index
