"""Deleting a mapping that nothing needs."""

from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from benchbench.deleting import delete_unused, in_use


def delete_mapping(mapping: Mapping) -> None:
    """Delete `mapping` and its resolutions; dataset and collection stay.

    Raises ConflictError where benchmarks use it, or an operation is resolving it.
    """
    resolving = Operation.objects.filter(kind=Operation.Kind.RESOLVE, subject_id=mapping.pk)
    if active := resolving.filter(status__in=Status.active()).first():
        raise in_use(mapping, active)
    delete_unused(mapping)
