"""Ranks by run as a matrix: of the documents of one query, or of one document for several queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from apps.records.models import Benchmark, Run
from benchbench.access import AnyUser, viewable


@dataclass(frozen=True, slots=True)
class RankRow:
    """A row of the matrix: a document or a query (`row`, None if it is unknown), and the rank in each run.

    Documents that the run did not find have no rank (None). `k` is the cutoff within which it counts.
    """

    name: str
    row: Any
    grade: int | None
    ranks: Sequence[int | None]
    k: int

    @property
    def cells(self) -> list[tuple[int | None, str]]:
        """Each rank with the name of its colour."""
        bands = ((1, "first"), (3, "top"), (self.k, "within"))  # up to which rank
        return [(rank, next((name for limit, name in bands if rank and rank <= limit), "")) for rank in self.ranks]

    @property
    def hits(self) -> int:
        """The number of runs that have it within the cutoff."""
        return sum(rank is not None and rank <= self.k for rank in self.ranks)


def list_benchmarks(user: AnyUser, *conditions: object, **filters: object) -> QuerySet[Benchmark]:
    """Return the benchmarks with completed runs that the user may view, newest first."""
    completed = Run.objects.filter(benchmark=OuterRef("pk"), status=Run.Status.COMPLETED)
    rows = viewable(Benchmark.objects.filter(Exists(completed), *conditions, **filters), user)
    related = ("mapping__collection", "mapping__dataset", "mapping__dataset_version", "dataset_version__dataset")
    return rows.select_related(*related).order_by("-created_at")
