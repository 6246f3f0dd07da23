"""Cancelling a benchmark."""

from apps.benchmarks.models import Benchmark
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from benchbench.database.rereading import refresh
from benchbench.errors import ConflictError


def cancel(benchmark: Benchmark) -> None:
    """Cancel a running benchmark. Its unfinished runs keep their rows and can be resumed by starting it again.

    One that is being measured again keeps the values that it had. Raises ConflictError when it is neither.
    """
    refresh(benchmark)
    operation = Operation.active_on(benchmark)
    if operation is None:
        raise ConflictError(f"The benchmark {benchmark.name!r} is {benchmark.status}, not running: nothing to cancel.")
    cancel_operation(operation)
    refresh(benchmark)
