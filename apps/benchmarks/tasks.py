"""Handlers of the operations on benchmarks, called by apps.operations."""

from typing import Any

from apps.benchmarks import progress
from apps.benchmarks.measuring import again
from apps.benchmarks.models import Benchmark
from apps.benchmarks.running import finishing
from apps.benchmarks.running.execution import execute
from apps.benchmarks.schedules.jobs import list_timed_jobs
from apps.engines import storing
from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation
from apps.operations.timing import list_prunings, schedule
from apps.retrieval.llms.answers import trim_answers


class BenchmarkHandler(Handler):
    list_last_batches = staticmethod(finishing.list_last_batches)
    stop = staticmethod(finishing.stop)
    list_completions = staticmethod(progress.list_completions)

    def perform(self, batch: Batch, lease: Lease) -> None:
        (finishing.evaluate_batch if finishing.EVALUATED in batch.payload else execute)(batch, lease)

    def finalise(self, operation: Operation) -> None:
        finishing.finish(operation)
        trim_answers()
        storing.trim_answers()

    def tidy(self) -> None:
        schedule([*list_timed_jobs(), *list_prunings()])

    def name(self, operation: Operation) -> str:
        return f'benchmark "{Benchmark.objects.get(pk=operation.subject_id)}"'

    def build_event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        return "benchmark_progress", progress.build_event(operation)


class MeasuringHandler(Handler):
    """The work of a `measure` operation; its subject is a benchmark."""

    perform = staticmethod(again.measure_part)
    finalise = staticmethod(again.finish_measuring)
    stop = staticmethod(again.stop_measuring)

    def build_event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        return "measuring_progress", again.build_event(operation)


handler = BenchmarkHandler()
measuring_handler = MeasuringHandler()
