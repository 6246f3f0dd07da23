from typing import Any

import pytest

from apps.mappings.models import Mapping
from apps.records.models import Benchmark, QueryResult
from apps.results.retention.policies import POLICIES
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.library import make_library
from tests.rankings import added_ranking
from tests.results.exported import make_exported
from tests.results.pruned import make_ended


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


@pytest.fixture
def exported(db: None) -> Benchmark:
    return make_exported()


@pytest.fixture
def ranking(db: None) -> QueryResult:
    """A ranking of three documents, of which the first is judged."""
    collection = make_collection("library", [{"title": name} for name in ("Pears", "Plums", "Figs")])
    mapping = make_mapping(make_dataset({"q1": [({"document_id": "d1"}, 3), ({"uri": "gone"}, 1)]}), collection)
    run = make_benchmark(mapping, [0.5]).runs.get()
    documents = list(mapping.collection.documents.order_by("external_id").values_list("pk", flat=True))
    return added_ranking(run, mapping.dataset.queries.get(), documents, scores=[3.0, 2.0, 1.0])


@pytest.fixture
def retention(settings: Any) -> None:
    """Everything is kept for 30 days."""
    for setting in {policy.setting for policy in POLICIES}:
        setattr(settings, setting, 30)


@pytest.fixture
def ended(transactional_db: None) -> Benchmark:
    """A benchmark of two runs that ended 100 days ago."""
    return make_ended()
