"""Progress of an operation as lines of text."""

from collections.abc import Iterator
from typing import Any

from benchbench.client.connection import ClientError

GOING_ON = ("pending", "running")
# Of kinds whose progress has no percentage, the fields of what is done and of the whole.
COUNTED = {
    "index": ("processed_documents", "total_documents"),
    "resolve": ("processed_refs", "total_refs"),
    "llm_judging": ("answers", "total_answers"),
    "measure": ("measured_rankings", "total_rankings"),
}


def told(operation: dict[str, Any]) -> str:
    """Return how far an operation is: "benchmark: evaluating, 41 %, 1 of 4 runs"."""
    return f"{operation['kind']}: {', '.join(_parts(operation))}"


def _parts(operation: dict[str, Any]) -> Iterator[str]:
    progress = operation["progress"]
    yield str(progress["stage" if operation["status"] in GOING_ON else "status"])
    if progress.get("waiting_for"):
        yield str(progress["waiting_for"])
    elif progress.get("queue_position"):
        yield f"number {progress['queue_position'] + 1} in the queue"
    if operation["status"] in GOING_ON and (share := _share(operation)) is not None:
        yield f"{share:.0f} %"
    if operation["kind"] == "benchmark":
        failed = f" ({progress['failed_runs']} failed)" if progress["failed_runs"] else ""
        yield f"{progress['completed_runs'] + progress['failed_runs']} of {progress['total_runs']} runs{failed}"


def _share(operation: dict[str, Any]) -> float | None:
    """Return the percentage that is done; None where there is nothing to count yet."""
    progress = operation["progress"]
    if "percent" in progress:
        return float(progress["percent"])
    done, whole = COUNTED.get(operation["kind"], ("", ""))
    total = progress.get(whole)
    return 100 * progress[done] / total if total else None


def ended_well(operation: dict[str, Any]) -> dict[str, Any]:
    """Return an operation that completed; raise ClientError for one that failed or was cancelled."""
    named = f"The operation {operation['operation_id']} ({operation['kind']})"
    if operation["status"] == "failed":
        raise ClientError(f"{named} failed: {operation['error']}", code="operation_failed")
    if operation["status"] == "cancelled":
        raise ClientError(f"{named} was cancelled.", code="operation_cancelled")
    return operation
