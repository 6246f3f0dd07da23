"""Finding the dataset that a command names, and a version of it."""

from uuid import UUID

from apps.datasets.models import Dataset, DatasetVersion
from benchbench.errors import BenchbenchError

SHOWN = 10


def find_dataset(named: str) -> Dataset:
    """Return the dataset whose name or id is `named`; raise a sentence where there is none, or more than one."""
    found = list(Dataset.objects.filter(name=named)[:2]) or _by_id(named)
    if len(found) == 1:
        return found[0]
    if found:
        raise BenchbenchError(f"Several datasets are called {named!r}, of different owners: give the dataset's id.")
    names = list(Dataset.objects.values_list("name", flat=True)[: SHOWN + 1])
    there = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    raise BenchbenchError(
        f"No dataset is called {named!r}; there is {there or 'none yet: `manage.py import_dataset` makes one'}."
    )


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


def _by_id(named: str) -> list[Dataset]:
    try:
        return list(Dataset.objects.filter(pk=UUID(named)))
    except ValueError:
        return []
