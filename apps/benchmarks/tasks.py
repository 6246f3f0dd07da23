"""Handlers of the operations on benchmarks, called by apps.operations."""

from typing import Any

from apps.benchmarks import progress
from apps.benchmarks.measuring import again
from apps.benchmarks.models import Benchmark
from apps.benchmarks.running import finishing
from apps.benchmarks.running.execution import execute
from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation
from apps.retrieval.llms.answers import trim_answers


class BenchmarkHandler(Handler):
    def perform(self, batch: Batch, lease: Lease) -> None:
        execute(batch, lease)

    def finalise(self, operation: Operation) -> None:
        finishing.finish(operation)
        trim_answers()

    def stop(self, operation: Operation) -> None:
        finishing.stop(operation)

    def name(self, operation: Operation) -> str:
        return f'benchmark "{Benchmark.objects.get(pk=operation.subject_id)}"'

    def event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        return "benchmark_progress", progress.benchmark_event(operation)

    def completions(self, operation: Operation, after: int) -> list[tuple[int, dict[str, Any]]]:
        return progress.completions(operation, after)


class MeasuringHandler(Handler):
    """The work of a `measure` operation; its subject is a benchmark."""

    def perform(self, batch: Batch, lease: Lease) -> None:
        again.measure_part(batch, lease)

    def finalise(self, operation: Operation) -> None:
        again.finish_measuring(operation)

    def stop(self, operation: Operation) -> None:
        again.stop_measuring(operation)

    def event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        return "measuring_progress", again.measuring_event(operation)


handler = BenchmarkHandler()
measuring_handler = MeasuringHandler()
