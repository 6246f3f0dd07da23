"""A dataset of one query with one judgment, to be edited."""

import pytest

from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset
from tests.datasets.fruit import RECORD


@pytest.fixture
def fruit(db: None) -> Dataset:
    return import_dataset(RECORD).version.dataset
