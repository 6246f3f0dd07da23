"""Datasets found by content, so that no judgments are imported twice."""

from dataclasses import replace
from typing import Any

from django.db import transaction

from apps.datasets.content import content_hash
from apps.datasets.importing import DatasetImport, import_dataset, report_of
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.records import DatasetRecord, check
from benchbench.names import checked_name, under_free_name


@transaction.atomic
def dataset_with(record: DatasetRecord, *, name: str, source: str, owner: Any = None) -> DatasetImport:
    """Return the owner's frozen version that holds what the record does; it is imported where there is none.

    A new dataset is called `name`, with a number where that is taken by another. `source` says where the record comes
    from and is kept as metadata: other content of the same source is the next version of its dataset. Raises what
    `import_dataset` does.
    """
    check(record)
    mine = Dataset.objects.filter(owner=owner)
    return under_free_name(name, [mine], lambda free: _found_or_imported(record, free, source, owner))


def _found_or_imported(record: DatasetRecord, name: str, source: str, owner: Any) -> DatasetImport:
    digest = content_hash(record.queries)
    mine = Dataset.objects.filter(owner=owner)
    equal = DatasetVersion.objects.filter(dataset__in=mine, content_hash=digest, frozen_at__isnull=False)
    if version := equal.select_related("dataset").order_by("created_at").first():
        return DatasetImport(version, report_of(record, version, "unchanged"))
    labelled = replace(record, label=digest[:12], metadata={**record.metadata, "source": source})
    of_source = mine.filter(metadata__source=source).order_by("created_at").first()
    dataset = of_source or Dataset.objects.create(owner=owner, name=checked_name(name, "dataset"))
    return import_dataset(labelled, owner=owner, next_of=dataset)
