"""Deleting a dataset."""

import pytest

from apps.collections.importing import create_collection
from apps.datasets.deleting import delete_dataset
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Judgment
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from apps.mappings.models import Mapping
from benchbench.errors import ConflictError


@pytest.fixture
def fruit(db: None) -> Dataset:
    record = DatasetRecord("fruit", [QueryRecord("red", "red fruit", [JudgmentRecord({"uri": "u"}, 1)])])
    return import_dataset(record).version.dataset


def test_it_deletes_all_versions(fruit: Dataset) -> None:
    delete_dataset(fruit)
    assert not Dataset.objects.exists()
    assert not Judgment.objects.exists()


def test_it_refuses_while_a_mapping_uses_it(fruit: Dataset) -> None:
    Mapping.objects.create(name="fruit on shelf", dataset=fruit, collection=create_collection("shelf"))
    with pytest.raises(ConflictError, match='"fruit" cannot be deleted: it is used by the mapping "fruit on shelf"'):
        delete_dataset(fruit)
    assert Judgment.objects.exists()
