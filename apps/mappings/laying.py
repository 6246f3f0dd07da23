"""Laying the queries of a file over a collection: import, map and resolve, each where it is not done yet."""

from typing import Any

from django.db import transaction

from apps.collections.models import Collection
from apps.datasets.importing import DatasetImport, import_dataset
from apps.datasets.records import DatasetRecord
from apps.mappings.creating import create_mapping, mapping_of
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale, resolve_now


@transaction.atomic
def lay(record: DatasetRecord, collection: Collection, *, owner: Any = None) -> tuple[Mapping, DatasetImport]:
    """Import a dataset and return its resolved mapping onto `collection`; all of it is kept, or nothing.

    What is there already is taken as it is. Raises what `import_dataset` raises, for a known name with other content
    among it.
    """
    imported = import_dataset(record, owner=owner)
    dataset = imported.version.dataset
    mapping = mapping_of(dataset, collection, owner=owner)
    if mapping is None:
        mapping = create_mapping(dataset, collection, owner=owner)
    if mapping.status == Mapping.Status.PENDING or is_stale(mapping):
        mapping = resolve_now(mapping)
    return mapping, imported
