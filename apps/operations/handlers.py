"""Handlers of the kinds of operations, named by dotted path, since this app knows no other."""

from typing import TYPE_CHECKING, Any, Protocol

from django.utils.module_loading import import_string

from apps.operations.models import Batch, Operation

if TYPE_CHECKING:
    from apps.operations.leasing import Lease

HANDLERS = {
    Operation.Kind.INDEX: "apps.retrieval.tasks.handler",
    Operation.Kind.RESOLVE: "apps.mappings.tasks.handler",
    Operation.Kind.BENCHMARK: "apps.benchmarks.tasks.handler",
    Operation.Kind.LLM_JUDGING: "apps.judging.tasks.handler",
    Operation.Kind.MEASURE: "apps.benchmarks.tasks.measuring_handler",
}


class Handler(Protocol):
    """The work of one kind of operation."""

    def perform(self, batch: Batch, lease: "Lease") -> None:
        """Do the batch, calling `lease.check()` between parts, and store what it made inside `with lease.commit(…)`.

        It may run twice: what it wrote before a crash must not count double.
        """

    def finalise(self, operation: Operation) -> None:
        """Conclude once every batch is done, within the transaction that completes the operation."""

    def stop(self, operation: Operation) -> None:
        """Settle the subject of an operation that failed or was cancelled, within the transaction that says so."""

    def tidy(self) -> None:
        """Give back what operations that ended have left, at each sweep. It must wait for nobody."""
        return None

    def name(self, operation: Operation) -> str:
        """Name what the operation is about, for people: benchmark "Does hybrid pay?"."""
        return str(operation)

    def event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        """Return the event type and its data: the whole progress as the database tells it."""

    def completions(self, operation: Operation, after: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the parts that finished past ordinal `after`, by ordinal, each with what its event says instead.

        A watcher is told of each once and in order, before it is told that the operation is over.
        """
        return []


def handler_for(operation: Operation) -> Handler:
    return handler_of(Operation.Kind(operation.kind))


def handler_of(kind: Operation.Kind) -> Handler:
    handler: Handler = import_string(HANDLERS[kind])
    return handler
