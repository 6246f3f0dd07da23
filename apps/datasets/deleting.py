"""Deleting a dataset."""

from apps.datasets.models import Dataset
from benchbench.deleting import delete_unused


def delete_dataset(dataset: Dataset) -> None:
    """Delete a dataset with all its versions; raise `ConflictError` where a mapping lays it over a collection."""
    delete_unused(dataset)
