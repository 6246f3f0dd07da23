"""Handlers of the operations on benchmarks, called by apps.operations."""

from apps.engines import storing
from apps.execution import progress
from apps.execution.provisional import describe_reranking
from apps.execution.running import finishing
from apps.execution.running.execution import execute
from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation, Status
from apps.records.measuring import again
from apps.records.models import Benchmark
from apps.records.models.batches import BatchPayload
from apps.retrieval.llms.answers import trim_answers


class BenchmarkHandler(Handler):
    kind = Operation.Kind.BENCHMARK
    subject = Benchmark
    busy = "benchmarks running"
    units = "searches and reranked pairs"
    limit = "BENCHMARK_MAX_RUNNING_PER_USER"
    list_last_batches = staticmethod(finishing.list_last_batches)
    stop = staticmethod(finishing.stop)
    list_completions = staticmethod(progress.list_completions)
    find_stage = staticmethod(progress.find_stage)

    def perform(self, batch: Batch, lease: Lease) -> None:
        (finishing.evaluate_batch if BatchPayload.from_batch(batch).evaluate else execute)(batch, lease)

    def finalise(self, operation: Operation) -> None:
        finishing.finish(operation)
        trim_answers()
        storing.trim_answers()

    def describe_units(self, operation: Operation) -> str:
        benchmark = Benchmark.objects.select_related("dataset_version").filter(pk=operation.subject_id).first()
        return describe_reranking(benchmark) if benchmark else ""

    def build_event(self, operation: Operation) -> tuple[str, dict[str, object]]:
        return "benchmark_progress", progress.build_event(operation)


class MeasuringHandler(Handler):
    """The work of a `measure` operation; its subject is a benchmark."""

    kind = Operation.Kind.MEASURE
    subject = Benchmark
    busy = "benchmarks being measured again"
    units = "rankings"
    limit = "BENCHMARK_MAX_MEASURING_PER_USER"

    perform = staticmethod(again.measure_part)
    finalise = staticmethod(again.finish_measuring)
    stop = staticmethod(again.stop_measuring)

    def find_stage(self, operation: Operation) -> str:
        return "measuring" if operation.status == Status.RUNNING else super().find_stage(operation)

    def build_event(self, operation: Operation) -> tuple[str, dict[str, object]]:
        return "measuring_progress", again.build_event(operation)
