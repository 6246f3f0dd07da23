"""Progress of an operation as lines of text."""

from collections.abc import Iterator
from typing import Any

from benchbench.client.connection import ClientError

ACTIVE_STATUSES = ("pending", "running")
# For kinds whose progress has no percentage: the fields of the finished work and of the total.
COUNT_FIELDS = {
    "index": ("processed_documents", "total_documents"),
    "resolve": ("processed_refs", "total_refs"),
    "llm_judging": ("answers", "total_answers"),
    "measure": ("measured_rankings", "total_rankings"),
}


def render_progress(operation: dict[str, object]) -> str:
    """Return the progress of an operation: "benchmark: evaluating, 41 %, 1 of 4 runs"."""
    return f"{operation['kind']}: {', '.join(_list_progress(operation))}"


def _list_progress(operation: dict[str, Any]) -> Iterator[str]:
    progress = operation["progress"]
    yield str(progress["stage" if operation["status"] in ACTIVE_STATUSES else "status"])
    if progress.get("waiting_for"):
        yield str(progress["waiting_for"])
    elif progress.get("queue_position"):
        yield f"number {progress['queue_position'] + 1} in the queue"
    if operation["status"] in ACTIVE_STATUSES and (share := _share(operation)) is not None:
        yield f"{share:.0f} %"
    if operation["kind"] == "benchmark":
        failed = f" ({progress['failed_runs']} failed)" if progress["failed_runs"] else ""
        yield f"{progress['completed_runs'] + progress['failed_runs']} of {progress['total_runs']} runs{failed}"


def _share(operation: dict[str, Any]) -> float | None:
    """Return the finished percentage; None if the total is still unknown."""
    progress = operation["progress"]
    if "percent" in progress:
        return float(progress["percent"])
    count_field, total_field = COUNT_FIELDS.get(operation["kind"], ("", ""))
    total = progress.get(total_field)
    return 100 * progress[count_field] / total if total else None


def require_success(operation: dict[str, object]) -> dict[str, object]:
    """Return a completed operation. Raises ClientError for a failed or cancelled one."""
    subject = f"The operation {operation['operation_id']} ({operation['kind']})"
    if operation["status"] == "failed":
        raise ClientError(f"{subject} failed: {operation['error']}", code="operation_failed")
    if operation["status"] == "cancelled":
        raise ClientError(f"{subject} was cancelled.", code="operation_cancelled")
    return operation
