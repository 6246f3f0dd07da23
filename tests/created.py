"""Benchmarks for tests, made by the use case, of options by keyword."""

from typing import Any

from apps.benchmarks.defining import creating
from apps.benchmarks.defining.creating import BenchmarkOptions
from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark
from apps.mappings.models import Mapping
from apps.operations.working import wait

BESIDES = ("owner", "version", "indexes", "manifest", "experiment")


def create_benchmark(mapping: Mapping, **stated: Any) -> Benchmark:
    besides = {name: stated.pop(name) for name in BESIDES if name in stated}
    return creating.create_benchmark(mapping, BenchmarkOptions(**stated), **besides)


def run_benchmark(mapping: Mapping, **stated: Any) -> Benchmark:
    """Create a benchmark and run it to its end."""
    benchmark = create_benchmark(mapping, **stated)
    wait(launch(benchmark))
    benchmark.refresh_from_db()
    return benchmark
