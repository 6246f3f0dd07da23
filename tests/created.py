"""Benchmarks for tests, made by the use case, of options by keyword."""

from typing import Any

from apps.benchmarks.defining import creating
from apps.benchmarks.defining.options import BenchmarkOptions
from apps.benchmarks.models import Benchmark
from apps.mappings.models import Mapping

BESIDES = ("owner", "version", "indexes", "manifest", "experiment")


def create_benchmark(mapping: Mapping, **stated: Any) -> Benchmark:
    besides = {name: stated.pop(name) for name in BESIDES if name in stated}
    return creating.create_benchmark(mapping, BenchmarkOptions(**stated), **besides)
