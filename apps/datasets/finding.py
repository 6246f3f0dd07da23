"""Finding the dataset that a command names, and a version of it."""

from apps.datasets.models import Dataset, DatasetVersion
from benchbench.errors import BenchbenchError


def find_version(dataset: Dataset, number: int | None = None, *, edited: bool = False) -> DatasetVersion:
    """Return a version by its number, a draft too; without one the newest frozen version, else the draft.

    With `edited` the draft comes first: what the dataset is with the edits that gather in it.
    """
    versions = dataset.versions.select_related("dataset").order_by("-number")
    if number is not None:
        found = versions.filter(number=number).first()
    else:
        found = (None if edited else versions.filter(frozen_at__isnull=False).first()) or versions.first()
    if found is None:
        there = ", ".join(str(one) for one in versions.values_list("number", flat=True)) or "none"
        raise BenchbenchError(f'The dataset "{dataset}" has no version {number}; there is {there}.', field="version")
    return found
