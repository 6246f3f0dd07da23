"""Every list costs as many queries with thirty rows as with three."""

import uuid
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.api.access.tokens import issue_token
from apps.benchmarks.models import Baseline, QueryResult
from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import freeze
from apps.datasets.editing.queries import edit_query
from apps.datasets.models import Judgment
from apps.datasets.views.datasets import judgments_shown
from apps.mappings.models import Resolution
from apps.operations.models import Batch, Operation, Status
from apps.retrieval.models import CachedVector, ChunkSet, Index, VectorSpace
from benchbench.site.panels import change_url, changelist_url
from tests.drafts import set_judgment
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_round
from tests.rankings import add_ranking

MOST = 12
OURS = sorted(
    (model for model in admin.site._registry if model.__module__.startswith("apps.")), key=lambda model: model.__name__
)


def make_row_everywhere(number: int) -> None:
    """Add a row to every table that has a list, each below parents of its own: the hardest case for a list."""
    name = f"row {number}"
    owner = User.objects.create_user(name)
    collection = make_collection(name, [{"title": name}])
    dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]}, name=name)
    mapping = make_mapping(dataset, collection, name=name, owner=owner)
    chunk_set = ChunkSet.objects.create(
        collection=collection, strategy="flat", fingerprint=name, collection_fingerprint=name
    )
    index = Index.objects.create(collection=collection, name=name, encoder="keyword:apple", chunk_set=chunk_set)
    benchmark = make_benchmark(mapping, [0.5], name=name, owner=owner)
    run, query = benchmark.runs.get(), dataset.queries.get()
    Baseline.objects.create(dataset=dataset, run=run, name=name, reason=name, approved_by=owner)
    make_round(run, name=name, owner=owner, judges=[owner])
    document = collection.documents.get()
    add_ranking(run, query, [document.pk], scores=[1.0])
    Resolution.objects.create(mapping=mapping, judgment=query.judgments.get(), document=document, outcome="resolved")
    operation = Operation.objects.create(
        kind="index", subject_id=index.pk, started_by=owner, status=Status.COMPLETED, queue=uuid.uuid4().hex
    )
    Batch.objects.create(operation=operation, ordinal=0)
    space = VectorSpace.objects.create(encoder=name, revision="1", kind="query", dimension=1)
    issue_token(owner, name=name)
    CachedVector.objects.create(space=space, text_hash=name, vector=b"1234")


def queries_for(client: Client, model: type[Model]) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(changelist_url(model))
    assert response.status_code == 200
    return len(captured)


@pytest.fixture
def rows(db: None) -> Any:
    for number in range(3):
        make_row_everywhere(number)


@pytest.mark.thorough
def test_every_list_costs_a_bounded_number_of_queries(admin_client: Client, rows: None) -> None:
    few = {model: queries_for(admin_client, model) for model in OURS}
    for number in range(3, 30):
        make_row_everywhere(number)
    many = {model: queries_for(admin_client, model) for model in OURS}
    assert many == few
    assert max(many.values()) <= MOST, many


def test_every_model_with_a_list_has_a_page(admin_client: Client, rows: None) -> None:
    for model in OURS:
        row = model._default_manager.first()
        assert row is not None, f"make_row_everywhere makes no {model.__name__}"
        assert admin_client.get(change_url(row)).status_code == 200, model


def test_lists_that_may_be_long_are_not_counted(admin_client: Client, rows: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        admin_client.get(changelist_url(Document))
    assert not [query for query in captured.captured_queries if "COUNT(" in query["sql"].upper()]


def test_a_search_finds_and_a_filter_narrows(admin_client: Client, rows: None) -> None:
    found = admin_client.get(changelist_url(Collection, q="row 2")).content.decode()
    assert "row 2" in found
    assert "row 1" not in found
    collection = Collection.objects.get(name="row 1")
    listed = admin_client.get(changelist_url(Document, collection__id__exact=collection.pk))
    assert [str(document) for document in listed.context["cl"].result_list] == ["row 1"]


def test_judgments_are_listed_as_they_are_now_with_their_dataset(admin_client: Client) -> None:
    dataset = make_dataset({"q1": [({"document_id": "kept"}, 1), ({"document_id": "changed"}, 1)]}, name="Fruit")
    set_judgment(dataset, "q1", {"document_id": "changed"}, 2)
    freeze(dataset)
    set_judgment(dataset, "q1", {"document_id": "drafted"}, 3)

    def listed(**asked: str) -> list[tuple[str, str, str]]:
        shown = admin_client.get(changelist_url(Judgment, **asked)).context["cl"]
        owner = shown.model_admin
        return sorted((row.reference, owner.dataset(row), owner.versions(row)) for row in shown.result_list)

    now = [("changed", "Fruit", "since v2"), ("drafted", "Fruit", "since v3"), ("kept", "Fruit", "since v1")]
    assert listed() == now
    assert listed(of="all") == sorted([*now, ("changed", "Fruit", "v1")])
    assert 'href="?of=all"' in admin_client.get(changelist_url(Judgment)).content.decode()
    edit_query(dataset.queries.get(), {"text": "Worded anew?"})
    assert [row[2] for row in listed()] == ["since v3"] * 3
    ended = dataset.queries.get(since=1)
    assert judgments_shown(ended).every == changelist_url(Judgment, query__id__exact=ended.pk, of="all")


def test_the_tab_of_a_list_is_called_by_what_is_listed(admin_client: Client) -> None:
    for model, name in ((Collection, "Collections"), (QueryResult, "Query results"), (User, "Users")):
        assert f"{name} | BenchBench</title>" in admin_client.get(changelist_url(model)).content.decode()
