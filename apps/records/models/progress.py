"""Shares of batches in the provisional means of runs, and their sums so far."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.operations.models import Operation


@dataclass(frozen=True, slots=True)
class RunShare:
    """The share of a batch in the provisional means of a run, as `BatchReport.runs` has it.

    It has the numbers of queries completed, failed and counted, and the queries cut short. For each measure it has the
    sum and the number of values: a query that counts may have no value (`FirstRelevant`). With weights these are the
    sum of weight × value, and of the weights. Of the `ranked` positions up to the greatest cutoff, `tied` have the
    score of a neighbour, as in the query `tied_query`.
    """

    completed: int
    counted: int
    sums: list[float]
    valued: list[float]
    failed: int = 0
    short: list[int] = field(default_factory=list)
    ranked: int = 0
    tied: int = 0
    tied_query: int | None = None


@dataclass(slots=True)
class RunSums:
    """The queries of a run that batches completed, those that count, and per measure the sum and number of values."""

    completed: int = 0
    counted: int = 0
    sums: list[float] = field(default_factory=list)
    valued: list[float] = field(default_factory=list)

    def add(self, share: RunShare) -> None:
        """Add the share of a batch. Measures that were added later follow those of earlier batches."""
        self.completed += share.completed
        self.counted += share.counted
        self.sums = _add(self.sums, share.sums)
        self.valued = _add(self.valued, share.valued)


def _add(totals: list[float], values: Iterable[float]) -> list[float]:
    return [total + value for total, value in zip(totals, values, strict=False)] if totals else [*values]


class MeansSoFar(models.Model):
    """Sums over batches of a benchmark's operation that are done, so that progress reads one row.

    A batch adds its share when it commits, unless another batch holds the row.
    """

    operation = models.OneToOneField(Operation, on_delete=models.CASCADE, primary_key=True, related_name="+")
    answered_before = models.PositiveIntegerField(
        null=True, help_text="Queries with results from before the operation. Empty before its first batch is done."
    )
    batch_ids = ArrayField(models.BigIntegerField(), default=list, help_text="Batches that the sums cover.")
    runs = models.JSONField(default=dict, help_text="The sums by run id.")

    def __str__(self) -> str:
        return f"the means so far of {self.operation}"

    def read_sums(self) -> dict[str, RunSums]:
        return {run_id: RunSums(**sums) for run_id, sums in self.runs.items()}

    def store_sums(self, sums: Mapping[str, RunSums]) -> None:
        runs = {run_id: asdict(total) for run_id, total in sums.items()}
        MeansSoFar.objects.filter(pk=self.pk).update(
            answered_before=self.answered_before, batch_ids=self.batch_ids, runs=runs
        )
