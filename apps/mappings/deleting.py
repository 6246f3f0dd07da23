"""Deleting a mapping that nothing needs."""

from django.db import transaction

from apps.collections.deleting import delete_collection
from apps.collections.models import Collection
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from benchbench.deleting import delete_unused, in_use


def delete_mapping(mapping: Mapping) -> None:
    """Delete `mapping` and its resolutions; dataset and collection stay.

    A collection of ids that was made for the external runs of this dataset goes with its mapping.
    Raises ConflictError where benchmarks use it, or an operation is resolving it.
    """
    resolving = Operation.objects.filter(kind=Operation.Kind.RESOLVE, subject_id=mapping.pk)
    if active := resolving.filter(status__in=Status.active()).first():
        raise in_use(mapping, active)
    with transaction.atomic():
        collection = mapping.collection
        delete_unused(mapping)
        if collection.kind == Collection.Kind.EXTERNAL:
            delete_collection(collection)
