"""Finding the dataset that a command names, and a version of it."""

from apps.datasets.models import Dataset, DatasetVersion
from benchbench.errors import BenchbenchError


def find_version(dataset: Dataset, number: int | None = None, *, edited: bool = False) -> DatasetVersion:
    """Return a version by its number, a draft too; without one the newest frozen version, else the draft.

    With `edited` the draft comes first: what the dataset is with the edits that gather in it.
    """
    versions = dataset.versions.select_related("dataset").order_by("-number")
    if number is not None:
        version = versions.filter(number=number).first()
    else:
        version = (None if edited else versions.filter(frozen_at__isnull=False).first()) or versions.first()
    if version is None:
        there = ", ".join(str(known) for known in versions.values_list("number", flat=True)) or "none"
        raise BenchbenchError(f'The dataset "{dataset}" has no version {number}; there is {there}.', field="version")
    return version
