"""A batch at work, as those who watch over the site see it: in logs, in counters, and as a span of OpenTelemetry."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from apps.operations.models import Batch
from apps.operations.monitoring.counters import count_batch
from benchbench.logs import at_work

DONE, FAILED, STOPPED, GIVEN_BACK = "done", "failed", "stopped", "given back"


@dataclass(slots=True)
class Watched:
    """How the batch was left, which is `DONE` unless somebody says otherwise."""

    outcome: str = DONE


@contextmanager
def watched(batch: Batch) -> Iterator[Watched]:
    """Name the batch in every line that is logged meanwhile, and count it, with its time, at the end."""
    began, left = time.monotonic(), Watched()
    kind = batch.operation.kind
    facts = {"operation": str(batch.operation_id), "batch": batch.ordinal, "worker": batch.lease_owner}
    try:
        with at_work(**facts), _span(f"batch {kind}", facts):
            yield left
    except BaseException:
        left.outcome = FAILED
        raise
    finally:
        count_batch(kind, left.outcome, time.monotonic() - began)


def _span(name: str, facts: dict[str, Any]) -> AbstractContextManager[Any]:
    """A span where OpenTelemetry is installed, which does nothing until its SDK is set up; otherwise nothing."""
    try:
        from opentelemetry import trace
    except ImportError:
        return nullcontext()
    named = {f"benchbench.{key}": value for key, value in facts.items()}
    return trace.get_tracer("benchbench").start_as_current_span(name, attributes=named)
