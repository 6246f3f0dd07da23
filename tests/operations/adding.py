"""A kind of operation whose work is to add up numbers: what `apps.operations` does is visible in the sum."""

import uuid
from typing import Any

from django.contrib.auth.models import User

from apps.collections.models import Collection
from apps.operations.handlers import Handler
from apps.operations.launching import start_operation
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation


class Adding(Handler):
    """Each batch carries a number; a batch may also say to raise, or to add further batches."""

    kind = Operation.Kind.RESOLVE
    subject = Collection
    busy = "sums being added"
    units = "numbers"
    limit = "BENCHMARK_MAX_RESOLVING_PER_USER"

    def __init__(self) -> None:
        self.performed: list[int] = []
        self.finalised = 0
        self.stopped: list[str] = []

    def perform(self, batch: Batch, lease: Lease) -> None:
        self.performed.append(batch.payload["number"])
        if batch.payload.get("raises") and batch.attempts <= batch.payload["raises"]:
            raise OSError(5, "The disk is away", "/srv/site/vectors/7.bin")
        lease.check()
        more = [({"number": number}, 1) for number in batch.payload.get("adds", [])]
        with lease.commit({"number": batch.payload["number"]}, batches=more):
            pass

    def finalise(self, operation: Operation) -> None:
        self.finalised += 1

    def stop(self, operation: Operation) -> None:
        self.stopped.append(operation.status)

    def build_event(self, operation: Operation) -> tuple[str, dict[str, Any]]:
        numbers = [result["number"] for result in operation.batches.values_list("result", flat=True) if result]
        return "adding_progress", {"operation_id": str(operation.pk), "sum": sum(numbers), "status": operation.status}


def start_adding(*payloads: dict[str, Any], by: User | None = None, queue: str = "default") -> Operation:
    """Start an operation on nothing, with a batch for each payload; without any, one that adds 1."""
    pieces = [(payload, 1) for payload in payloads or ({"number": 1},)]
    return start_operation(Operation.Kind.RESOLVE, subject_id=uuid.uuid4(), batches=pieces, by=by, queue=queue)


def batches(operation: Operation) -> list[Batch]:
    return list(operation.batches.order_by("ordinal"))
