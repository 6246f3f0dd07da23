"""History of rows: who changed, started, cancelled and approved what, by page or by request."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from benchbench.site.history import note
from benchbench.site.panels import change_url, changelist_url
from tests.api.callers import Callers
from tests.api.conftest import callers, make_staff  # noqa: F401
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping


def told(row: Any, client: Client) -> str:
    """What the page of a row's history says, whose names are those of who acted."""
    name = row._meta.label_lower.replace(".", "_")
    return client.get(reverse(f"admin:{name}_history", args=[row.pk])).content.decode()


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library(documents=3, queries=2)


def test_requests_are_told_of_what_they_changed(callers: Callers, library: Mapping, admin_client: Client) -> None:  # noqa: F811
    Mapping.objects.update(owner=callers.owner.user)
    benchmark = create_benchmark(library, name="which", matrix={"search_modes": ["sparse"]}, owner=callers.owner.user)
    path = f"/benchmarks/{benchmark.pk}"
    assert callers.owner.post(f"{path}/start").status_code == 200
    assert callers.owner.get(path).status_code == 200
    assert callers.other.post(f"{path}/cancel").status_code == 403
    operation = Operation.objects.get(subject_id=benchmark.pk)
    assert callers.owner.post(f"/operations/{operation.pk}/cancel").status_code == 200
    said = LogEntry.objects.order_by("pk").values_list("object_id", "user__username", "change_message")
    assert list(said) == [
        (str(benchmark.pk), "owner", said[0][2]),
        (str(operation.pk), "owner", said[1][2]),
        (str(benchmark.pk), "owner", said[1][2]),
    ]
    assert said[0][2].startswith("API: Start a benchmark")
    assert said[1][2].startswith("API: Cancel")
    assert callers.owner.user.username in told(benchmark, admin_client)
    assert callers.owner.delete(path).status_code == 204
    deleted = LogEntry.objects.latest("pk")
    assert (deleted.object_id, deleted.is_deletion(), deleted.user.username) == (str(benchmark.pk), True, "owner")


def test_what_is_made_has_its_maker(callers: Callers, db: None) -> None:  # noqa: F811
    for _ in range(2):  # sent again, it does nothing more
        made = callers.owner.post("/collections", {"name": "fruit"}, **{"Idempotency-Key": "once"})
        assert made.status_code == 201
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr, entry.user.username) == (made.json()["id"], "fruit", "owner")


def test_many_judgments_are_one_act(callers: Callers, db: None) -> None:  # noqa: F811
    dataset = make_dataset({f"q{n}": [({"document_id": "d"}, 1)] for n in range(200)})
    edits = [{"query_key": f"q{n}", "doc_ref": {"document_id": "e"}, "relevance_grade": 1} for n in range(200)]
    with CaptureQueriesContext(
        connection,
    ) as asked:
        answer = callers.owner.post(f"/benchmark-datasets/{dataset.pk}/judgments/bulk", {"judgments": edits})
    assert answer.status_code == 200, answer.content
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.user.username) == (str(dataset.pk), "owner")
    assert len([query for query in asked if "django_admin_log" in query["sql"]]) == 1


def test_pages_are_told_of_what_they_changed(admin_client: Client, db: None) -> None:
    """Buttons, and forms: that of a run's page, and one that makes a row."""
    mapping = make_mapping(make_dataset({"q1": [({"document_id": "d1"}, 1)]}), make_collection("c", [{"title": "a"}]))
    benchmark = make_benchmark(mapping, [0.5])
    run = benchmark.runs.get()
    LogEntry.objects.all().delete()
    form = {"run": run.pk, "name": "main", "reason": "It is what we serve."}
    assert admin_client.post(reverse("admin:benchmarks_baseline_add"), form).status_code == 302
    assert "Pin a run as baseline" in told(run, admin_client)
    acts = {"action": "resolve_selected", "_selected_action": [str(mapping.pk)]}
    admin_client.post(changelist_url(Mapping), acts)
    assert LogEntry.objects.get(object_id=str(mapping.pk)).user.username == "admin"
    refused = {"action": "cancel_selected", "_selected_action": [str(benchmark.pk)]}
    admin_client.post(changelist_url(Benchmark), refused)
    assert not LogEntry.objects.filter(object_id=str(benchmark.pk)).exists()
    admin_client.post(change_url(mapping.collection), {"name": "renamed"})
    assert "Changed Name." in told(mapping.collection, admin_client)


def test_who_did_something_is_not_deleted(admin_client: Client, admin_user: User) -> None:
    """The log would go along: the account is made inactive."""
    ada = User.objects.create_user("ada", is_staff=True)
    collection = Collection.objects.create(name="fruit")
    delete = reverse("admin:auth_user_delete", args=[ada.pk])
    assert admin_client.get(delete).status_code == 200
    LogEntry.objects.log_actions(ada.pk, [collection], 2, "Changed.", single_object=True)
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=ada.pk).exists()


def test_superusers_read_what_was_done_to_rows_that_are_gone(admin_client: Client, admin_user: User) -> None:
    collection = Collection.objects.create(name="<b>fruit</b>")
    note(admin_user, [collection], "Looked at.")
    path = change_url(collection)
    assert admin_client.post(reverse("admin:collections_collection_delete", args=[collection.pk]), {"post": "yes"})
    every = changelist_url(LogEntry)
    page = admin_client.get(every).content.decode()
    assert "Looked at." in page
    assert "deleted" in page
    assert "&lt;b&gt;fruit" in page
    assert page.count(f'href="{path}"') == 1, "of the deletion there is no link"
    for found, count in (({"q": str(collection.pk)}, 2), ({"q": "nobody"}, 0), ({"action_flag__exact": 3}, 1)):
        assert len(admin_client.get(every, found).context["cl"].result_list) == count, found
    entry = LogEntry.objects.latest("pk")
    assert admin_client.get(change_url(entry)).status_code == 200
    assert admin_client.post(change_url(entry), {"object_repr": "nothing"}).status_code == 403
    assert (
        admin_client.post(reverse("admin:admin_logentry_delete", args=[entry.pk]), {"post": "yes"}).status_code == 403
    )
    assert LogEntry.objects.count() == 2


def test_only_superusers_read_the_log(callers: Callers) -> None:  # noqa: F811
    note(callers.owner.user, [Collection.objects.create(name="fruit")], "Looked at.")
    entry = LogEntry.objects.get()
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.set(Permission.objects.all())
    client = Client()
    client.force_login(reader)
    for path in (changelist_url(LogEntry), change_url(entry)):
        assert client.get(path).status_code == 403
    assert changelist_url(LogEntry) not in client.get(reverse("admin:index")).content.decode()
