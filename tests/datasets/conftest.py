"""A dataset of one query with one judgment, to be edited."""

import pytest

from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord

APPLE, PEAR = {"document_id": "apple"}, {"document_id": "pear"}
RECORD = DatasetRecord("fruit", [QueryRecord("red", "red fruit", [JudgmentRecord(APPLE, 3)])], label="1")


@pytest.fixture
def fruit(db: None) -> Dataset:
    return import_dataset(RECORD).version.dataset
