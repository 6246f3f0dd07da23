"""Cancelling a benchmark."""

from apps.benchmarks.models import Benchmark
from apps.operations.launching import cancel_operation
from benchbench.errors import ConflictError


def cancel(benchmark: Benchmark) -> None:
    """Cancel a running benchmark. Its unfinished runs keep their rows and can be resumed by starting it again.

    Raises ConflictError when it is not running.
    """
    benchmark.refresh_from_db()
    if benchmark.operation is None or not benchmark.operation.is_active:
        raise ConflictError(f"The benchmark {benchmark.name!r} is {benchmark.status}, not running: nothing to cancel.")
    cancel_operation(benchmark.operation)
    benchmark.refresh_from_db()
