"""The draft of a dataset, and its differences to the version before it."""

from apps.datasets.editing.differences import Changes, Difference
from apps.datasets.models import Dataset, DatasetVersion
from benchbench.errors import ConflictError


def draft_of(dataset: Dataset) -> DatasetVersion | None:
    """Return the draft of a dataset, where something was edited since the newest frozen version."""
    return DatasetVersion.objects.select_related("dataset").filter(dataset=dataset, frozen_at__isnull=True).first()


def require_draft(version: DatasetVersion) -> None:
    """Raise ConflictError for a version that is frozen."""
    if version.frozen_at is not None:
        raise ConflictError(f"{version} is frozen: it never changes, and goes only with its dataset.")


def difference_of(version: DatasetVersion) -> Difference:
    """Return what a version holds otherwise than the one before it: of the draft, than the newest frozen version."""
    return Difference(version, since=version.number - 1)


def changes_of(draft: DatasetVersion) -> Changes:
    """Count what the draft changes, in one statement."""
    return difference_of(draft).counts()
