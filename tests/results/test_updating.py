"""Bringing a draft to the values in one action, and the content of a dataset's page."""

from unittest.mock import Mock

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from apps.datasets.editing.drafts import freeze
from apps.datasets.models import Dataset
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.models import Operation
from apps.records.models import Benchmark, Evaluation
from apps.results.triage import updating
from benchbench.errors import BenchbenchError
from benchbench.site.panels import change_url
from tests.benchmarks.figures import by_query
from tests.drafts import set_judgment
from tests.factories import make_collection, make_mapping
from tests.results.compared import make_finished
from tests.site import freeze_by_page, freeze_url, messages_of, text_of


@pytest.fixture
def finished(transactional_db: None) -> Benchmark:
    return make_finished()


def test_one_action_freezes_resolves_and_rescores(admin_client, finished):
    dataset, query = finished.mapping.dataset, finished.dataset_version.queries.order_by("key").first()
    second = make_mapping(
        dataset, make_collection("empty"), status="resolved", dataset_version=finished.dataset_version
    )
    set_judgment(dataset, query.key, {"document_id": "doc-0001"}, 3)
    page = text_of(admin_client.get(freeze_url(dataset)))
    assert "Then 2 mappings will be resolved for it, and 1 benchmark re-scored from stored rankings." in page
    moved = freeze_by_page(admin_client, dataset, finish="1")
    text = text_of(moved)
    assert moved.redirect_chain[-1][0] == f"{reverse('admin:dataset_moved', args=[dataset.pk])}?version=2"
    assert "questions v2 is frozen" in messages_of(moved)
    assert "Measured 2 runs on questions v2 from stored rankings." in messages_of(moved)
    assert "nDCG@10, from v1 to v2" in text, "it lands on what moved"
    assert Evaluation.objects.filter(dataset_version__number=2).count() == 2
    assert {row.dataset_version.number for row in Mapping.objects.all()} == {2}
    assert "Resolve and re-score" not in text_of(admin_client.get(change_url(dataset)))
    assert str(second) in messages_of(moved)


def test_dataset_page_shows_content_before_its_form(admin_client, finished, django_assert_max_num_queries):
    """What the queries hold, their values, the state of each mapping, and what each version changed."""
    dataset, query = finished.mapping.dataset, finished.dataset_version.queries.order_by("id").first()
    Dataset.objects.filter(pk=dataset.pk).update(description="What shoppers ask.")
    lost = make_mapping(dataset, make_collection("empty"))
    resolve(lost)
    set_judgment(dataset, query.key, {"document_id": "doc-0001"}, 3)
    response = freeze_by_page(admin_client, dataset, finish="1") and admin_client.get(change_url(dataset))
    page, displayed = response.content.decode(), text_of(response)
    assert page.index("What shoppers ask.") < page.index('id="queries"') < page.index('id="edit"')
    assert "of grade 3" in displayed
    health = {one.mapping.pk: one for one in response.context["health"]}
    assert (health[lost.pk].resolved, health[lost.pk].lost_gain) == (0.0, 1.0)
    assert (health[finished.mapping_id].mapping.last["name"], health[lost.pk].mapping.last) == ("Which mode?", None)
    table = response.context["query_table"]
    best = Evaluation.objects.get(run=table.evaluation.run, dataset_version__number=2)
    assert {row.query.pk: row.values[0] for row in table.rows} == by_query(best)
    (second,) = Evaluation.objects.filter(dataset_version__number=2).exclude(pk=best.pk)
    Evaluation.objects.filter(pk=second.pk).update(means=second.means | {table.measure: 1.0})
    assert admin_client.get(change_url(dataset)).context["query_table"].evaluation == second, "the best on this version"
    assert f"{change_url(table.rows[0].result)}?version=2" in page
    assert [(version.number, totals.get("judgments_added")) for version, totals in response.context["versions"]] == [
        (2, 1),
        (1, None),
    ]
    assert "Judgments added 1" in text_of(admin_client.get(change_url(dataset.versions.get(number=2))))
    for url in (change_url(dataset), f"{reverse('admin:dataset_moved', args=[dataset.pk])}?version=2"):
        with django_assert_max_num_queries(25):
            admin_client.get(url)


def test_update_reports_failing_and_forbidden_steps(client, admin_client, finished, monkeypatch):
    dataset = finished.mapping.dataset
    page = reverse("admin:dataset_moved", args=[dataset.pk])
    set_judgment(dataset, finished.dataset_version.queries.first().key, {"document_id": "doc-0001"}, 3)
    freeze(dataset)
    viewer = User.objects.create_user("vera", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_dataset"))
    client.force_login(viewer)
    assert client.post(page).status_code == 403
    steps = text_of(client.get(change_url(dataset)))
    assert "Not yet updated to it: 1 mapping" in steps
    assert "Resolve and re-score" not in steps
    with monkeypatch.context() as patched:
        patched.setattr(updating, "rescore", Mock(side_effect=BenchbenchError("No room.")))
        answer = messages_of(admin_client.post(page, follow=True))
    assert "Resolved the mapping" in answer, "the step before it is done"
    assert "“Which mode?”: No room." in answer
    assert "Measured 2 runs" in messages_of(admin_client.post(page, follow=True))
    assert "has values on questions v2" in messages_of(admin_client.post(page, follow=True))
    assert admin_client.get(page, {"version": "9"}).status_code == 404


def test_long_rescoring_shows_its_progress(admin_client, finished, settings):
    settings.BENCHBENCH_MEASURE_AT_ONCE = 0
    dataset = finished.mapping.dataset
    set_judgment(dataset, finished.dataset_version.queries.first().key, {"document_id": "doc-0001"}, 3)
    answer = freeze_by_page(admin_client, dataset, finish="1")
    operation = Operation.objects.get(kind=Operation.Kind.MEASURE)
    assert "is queued" in messages_of(answer)
    assert f'data-operation="{operation.pk}"' in answer.content.decode()
    assert "No benchmark is re-scored on questions v2 yet: a worker is at it." in text_of(answer)
