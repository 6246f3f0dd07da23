"""What a draft holds that the version before it does not."""

from dataclasses import dataclass

from django.db.models import Q

from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from benchbench.errors import ConflictError


@dataclass(frozen=True, slots=True)
class Changes:
    """How many judgments a draft adds, changes and removes, of queries that it keeps; `queries` changed themselves.

    A query that is added, removed or worded anew is one change, whatever its judgments.
    """

    added: int
    changed: int
    removed: int
    queries: int

    @property
    def total(self) -> int:
        return self.added + self.changed + self.removed + self.queries

    @property
    def sentence(self) -> str:
        """`3 changes: 1 judgment added, 2 judgments changed`."""
        parts = [
            f"{count:,} {one if count == 1 else many} {done}"
            for count, one, many, done in (
                (self.added, "judgment", "judgments", "added"),
                (self.changed, "judgment", "judgments", "changed"),
                (self.removed, "judgment", "judgments", "removed"),
                (self.queries, "query", "queries", "changed"),
            )
            if count
        ]
        counted = f"{self.total:,} change{'' if self.total == 1 else 's'}"
        return f"{counted}: {', '.join(parts)}" if parts else "no changes"


def draft_of(dataset: Dataset) -> DatasetVersion | None:
    """Return the draft of a dataset, where something was edited since the newest frozen version."""
    return DatasetVersion.objects.select_related("dataset").filter(dataset=dataset, frozen_at__isnull=True).first()


def require_draft(version: DatasetVersion) -> None:
    """Raise ConflictError for a version that is frozen."""
    if version.frozen_at is not None:
        raise ConflictError(f"{version} is frozen: it never changes, and goes only with its dataset.")


def changes_of(draft: DatasetVersion) -> Changes:
    """Count what the draft changes, in three queries that read only what changed."""
    number = draft.number
    queries = Query.objects.filter(Q(since=number) | Q(until=number), dataset=draft.dataset_id)
    touched = dict(queries.values_list("pk", "key"))
    judgments = Judgment.objects.filter(query__dataset=draft.dataset_id).exclude(query__in=touched)
    new = set(judgments.filter(since=number).values_list("query_id", "ref_hash"))
    old = set(judgments.filter(until=number).values_list("query_id", "ref_hash"))
    return Changes(len(new - old), len(new & old), len(old - new), queries=len(set(touched.values())))
