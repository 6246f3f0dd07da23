import pytest

from apps.mappings.models import Mapping
from tests.benchmarks.conftest import make_library
from tests.factories import make_collection, make_dataset, make_mapping


@pytest.fixture
def mapping(db: None) -> Mapping:
    """Two queries, of which one has an unresolved judgment, over three documents."""
    collection = make_collection("library", [{"title": "On pears"}, {"title": "On plums"}, {"title": "On figs"}])
    dataset = make_dataset({"pear": [({"document_id": "d1"}, 3)], "plum": [({"document_id": "d2"}, 2)]})
    return make_mapping(dataset, collection)


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    """A shelf of fruit, really indexed, that a benchmark can run over."""
    return make_library()
