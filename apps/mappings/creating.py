"""Laying a dataset over a collection."""

from typing import Any

from django.db import IntegrityError, transaction

from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from benchbench.access import usable
from benchbench.errors import ConflictError
from benchbench.names import checked_name, free_name


class MappingExistsError(ConflictError):
    """The dataset is mapped to the collection already, or the name is taken."""

    code = "mapping_exists"


def create_mapping(dataset: Dataset, collection: Collection, *, name: str = "", owner: Any = None) -> Mapping:
    """Create the mapping of `dataset` onto `collection`, not yet resolved.

    Without a name it is called after both, by the first such name that the owner has not used: nobody is told that a
    name is taken which nobody stated. Raises MappingExistsError: the two have at most one mapping, and an owner's
    mappings have different names; ConflictError for the ids of another dataset's external runs.
    """
    if collection.kind == Collection.Kind.EXTERNAL and collection.mappings.exclude(dataset=dataset).exists():
        raise ConflictError(
            f'The collection "{collection}" holds the ids of another dataset\'s external runs: importing a run '
            "makes one for this dataset.",
            field="collection",
        )
    mine = Mapping.objects.filter(owner=owner)
    after_both = f"{dataset.name} on {collection.name}"
    called = checked_name(name or free_name(after_both, mine.values_list("name", flat=True)), "mapping")
    try:
        with transaction.atomic():
            return Mapping.objects.create(name=called, dataset=dataset, collection=collection, owner=owner)
    except IntegrityError as error:
        same = mapping_of(dataset, collection, owner=owner)
        if same is not None:
            raise MappingExistsError(
                f'The dataset "{dataset}" is already mapped to the collection "{collection}", by the mapping "{same}": '
                "resolve that one again."
            ) from error
        if not mine.filter(name=called).exists():
            raise
        if not name:  # somebody took it in the same moment
            return create_mapping(dataset, collection, owner=owner)
        raise MappingExistsError(f'A mapping "{called}" exists already: choose another name.', field="name") from error


def mapping_of(dataset: Dataset, collection: Collection, *, owner: Any = None) -> Mapping | None:
    """Return the mapping of `dataset` onto `collection`, of which there is at most one.

    Raises MappingExistsError where `owner` does not see it: nothing of theirs is measured by it, or told of it.
    """
    same = Mapping.objects.filter(dataset=dataset, collection=collection)
    if owner is not None and same.exists() and not usable(same, owner).exists():
        raise MappingExistsError(
            f'The dataset "{dataset}" is already mapped to the collection "{collection}", by somebody else: ask for '
            "that mapping to be shared with your team."
        )
    return same.first()
