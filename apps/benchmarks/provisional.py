"""Provisional sums of a benchmark's runs: what its batches have reported, read once by each process."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from uuid import UUID

from apps.operations.models import Batch, Operation

MAX_OPERATIONS = 32  # whose sums a process remembers
AT_ONCE = 20  # batches whose results are in memory at a time


@dataclass(slots=True)
class RunSums:
    """The queries of a run that batches completed, those that count, and per measure the sum and number of values."""

    completed: int = 0
    counted: int = 0
    sums: list[float] = field(default_factory=list)
    valued: list[int] = field(default_factory=list)

    def add(self, entry: dict[str, Any]) -> None:
        """Add the entry of a batch's result. Measures that were added later follow those of earlier batches."""
        self.completed += entry["completed"]
        self.counted += entry["counted"]
        self.sums = _add(self.sums, entry["sums"])
        self.valued = _add(self.valued, entry["valued"])

    def copy(self) -> "RunSums":
        return RunSums(self.completed, self.counted, [*self.sums], [*self.valued])


@dataclass(slots=True)
class _DoneSums:
    """The sums of the batches that are done, whose results never change."""

    batch_ids: set[int] = field(default_factory=set)
    runs: dict[str, RunSums] = field(default_factory=dict)
    lock: Any = field(default_factory=Lock)


_remembered: OrderedDict[UUID, _DoneSums] = OrderedDict()
_lock = Lock()


def load_run_sums(operation: Operation) -> dict[str, RunSums]:
    """Return the sums by run id over the batches of an operation that are done, and over reports of running ones.

    Reports count only while the operation is active: afterwards only done batches have rankings. Viewers in one process
    share the sums of done batches, so that a refresh loads only the results that are new since the last one.
    """
    finished = _recall(operation.pk)
    with finished.lock:
        ids = set(operation.batches.filter(state=Batch.State.DONE).order_by().values_list("pk", flat=True))
        if not finished.batch_ids <= ids:
            finished.batch_ids, finished.runs = set(), {}
        fresh = sorted(ids - finished.batch_ids)
        for start in range(0, len(fresh), AT_ONCE):
            keys = fresh[start : start + AT_ONCE]
            _add_results(finished.runs, Batch.objects.filter(pk__in=keys).order_by("pk"))
            finished.batch_ids.update(keys)
        sums = {run: total.copy() for run, total in finished.runs.items()}
    if operation.is_active:
        _add_results(sums, operation.batches.filter(state=Batch.State.RUNNING))
    return sums


def _recall(operation_id: UUID) -> _DoneSums:
    with _lock:
        finished = _remembered.pop(operation_id, None) or _DoneSums()
        _remembered[operation_id] = finished
        while len(_remembered) > MAX_OPERATIONS:
            _remembered.popitem(last=False)
        return finished


def _add_results(sums: dict[str, RunSums], batches: Any) -> None:
    for runs in batches.values_list("result__runs", flat=True):
        for run, entry in (runs or {}).items():
            sums.setdefault(run, RunSums()).add(entry)


def _add(totals: list[Any], values: Iterable[Any]) -> list[Any]:
    values = [*values]
    if not totals:
        return values
    return [total + value for total, value in zip(totals, values, strict=False)]
