"""Deleting a mapping that nothing needs, and a dataset with its mappings."""

from django.db import transaction

from apps.collections.deleting import delete_collection
from apps.collections.models import Collection
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from benchbench.database.rereading import refresh
from benchbench.deleting import delete_unused, in_use
from benchbench.errors import ConflictError


def delete_mapping(mapping: Mapping) -> None:
    """Delete `mapping` and its resolutions; dataset and collection stay.

    A collection of ids that was made for the external runs of this dataset goes with its mapping.
    Raises ConflictError where benchmarks use it, or an operation is resolving it.
    """
    with transaction.atomic():
        refresh(mapping, Mapping.objects.select_for_update())  # whoever starts to resolve it waits
        if active := Operation.active_on(mapping):
            raise in_use(mapping, active)
        collection = mapping.collection
        delete_unused(mapping)
        if collection.kind == Collection.Kind.EXTERNAL:
            delete_collection(collection)


@transaction.atomic
def delete_dataset(dataset: Dataset) -> None:
    """Delete a dataset with all its versions and its mappings, whose collections stay.

    A mapping can be made again, and results cannot: raises ConflictError, and deletes nothing, where a benchmark uses
    one of them, or an operation is resolving it.
    """
    try:
        for mapping in dataset.mappings.select_related("collection"):
            delete_mapping(mapping)
    except ConflictError as error:
        raise ConflictError(f'The dataset "{dataset}" cannot be deleted. {error.message}') from error
    delete_unused(dataset)
