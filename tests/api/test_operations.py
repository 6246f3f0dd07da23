"""Operations over HTTP, and the history of rows: who changed, started, cancelled and approved what."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.api.resource import Operation as Declared
from apps.api.resource import Resource
from apps.collections.models import Collection
from apps.judging.models import Grade
from apps.mappings.models import Mapping
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.operations.progress import snapshot
from apps.records.models import Benchmark
from apps.retrieval.indexing import build_index, create_index
from benchbench.site.history import note
from benchbench.site.panels import build_list_url, change_url
from tests.api.bodies import owned_collection
from tests.api.callers import Caller, Callers, assert_refused
from tests.created import create_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.library import make_library

PATH = "/operations"
LISTED = {
    *("operation_id", "kind", "subject_id", "owner_id", "started_by", "queue", "priority", "status", "error"),
    *("created_at", "started_at", "finished_at"),
}


def begun(caller: Caller, name: str = "fruit") -> Operation:
    index = create_index(owned_collection(caller, name, [{"text": "apple"}]), name="keywords", owner=caller.user)
    return build_index(index, by=caller.user)


def test_operation_matches_the_first_socket_event(callers: Callers) -> None:
    operation = begun(callers.owner)
    facts = callers.owner.get(f"{PATH}/{operation.pk}").json()
    assert facts == snapshot(operation)
    assert (facts["event"], facts["progress"]["stage"]) == ("index_progress", "starting")
    assert (facts["created_at"][-1], facts["started_at"]) == ("Z", None)
    assert (facts["owner_id"], facts["started_by"]) == (callers.owner.user.pk, "owner")
    listed = callers.owner.get(PATH).json()
    assert listed == {"operations": [{key: facts[key] for key in LISTED}], "total": 1, "page": 1, "per_page": 50}


def test_it_lists_those_of_a_status_and_a_kind(callers: Callers) -> None:
    ended, active = begun(callers.owner, "one"), begun(callers.owner, "two")
    cancel_operation(ended)

    def ids(**query: Any) -> list[str]:
        return [row["operation_id"] for row in callers.owner.get(PATH, **query).json()["operations"]]

    assert ids() == [str(active.pk), str(ended.pk)]
    assert ids(status_filter="cancelled") == [str(ended.pk)]
    assert ids(status_filter="pending", kind="index") == [str(active.pk)]
    assert ids(kind="benchmark") == []
    assert callers.other.get(PATH).json()["total"] == 0
    assert callers.overseer.get(PATH).json()["total"] == 2


def test_it_cancels_once(callers: Callers) -> None:
    operation = begun(callers.owner)
    path = f"{PATH}/{operation.pk}/cancel"
    answer = callers.owner.post(path)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["progress"]["stage"] == "cancelled"
    assert_refused(callers.owner.post(path), 409, "conflict", "has already ended (cancelled)")
    assert callers.owner.get(f"/indexes/{operation.subject_id}").json()["status"] == "cancelled"


def test_operation_outlives_its_deleted_subject(callers: Callers) -> None:
    operation = begun(callers.owner)
    cancel_operation(operation)
    assert callers.owner.delete(f"/indexes/{operation.subject_id}").status_code == 204
    facts = callers.owner.get(f"{PATH}/{operation.pk}").json()
    assert (facts["status"], facts["progress"]["collection_id"]) == ("cancelled", None)


def history_page(row: Any, client: Client) -> str:
    """What the page of a row's history says, whose names are those of who acted."""
    name = row._meta.label_lower.replace(".", "_")
    return client.get(reverse(f"admin:{name}_history", args=[row.pk])).content.decode()


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library(documents=3, queries=2)


def test_api_requests_are_logged_for_the_changed_objects(
    callers: Callers, library: Mapping, admin_client: Client
) -> None:
    Mapping.objects.update(owner=callers.owner.user)
    benchmark = create_benchmark(library, name="which", matrix={"search_modes": ["sparse"]}, owner=callers.owner.user)
    path = f"/benchmarks/{benchmark.pk}"
    assert callers.owner.post(f"{path}/start").status_code == 200
    assert callers.owner.get(path).status_code == 200
    assert callers.other.post(f"{path}/cancel").status_code == 403
    operation = Operation.objects.get(subject_id=benchmark.pk)
    assert callers.owner.post(f"/operations/{operation.pk}/cancel").status_code == 200
    message = LogEntry.objects.order_by("pk").values_list("object_id", "user__username", "change_message")
    assert list(message) == [
        (str(benchmark.pk), "owner", message[0][2]),
        (str(operation.pk), "owner", message[1][2]),
        (str(benchmark.pk), "owner", message[1][2]),
    ]
    assert message[0][2] == "API: Start or resume a benchmark."
    assert message[1][2] == "API: Cancel an operation."
    assert callers.owner.user.username in history_page(benchmark, admin_client)
    assert callers.owner.delete(path).status_code == 204
    deleted = LogEntry.objects.latest("pk")
    assert (deleted.object_id, deleted.is_deletion(), deleted.user.username) == (str(benchmark.pk), True, "owner")


def test_every_change_but_of_grades_has_a_history() -> None:
    kinds = [kind for kind in Resource.kinds if hasattr(kind, "model") and kind.model is not Grade]
    declared = {name: getattr(method, "operation", None) for kind in kinds for name, method in vars(kind).items()}
    changes = {name: one for name, one in declared.items() if isinstance(one, Declared) and one.permission != "view"}
    assert len(changes) > 40
    assert [name for name, one in changes.items() if not one.history] == []


def test_removing_a_draft_query_is_logged_as_a_change(callers: Callers, db: None) -> None:
    dataset = make_dataset({"q1": [], "q2": []}, owner=callers.owner.user)
    path = f"/benchmark-datasets/{dataset.pk}"
    query = dataset.queries.get(key="q1")
    assert callers.owner.delete(f"{path}/queries/{query.pk}").status_code == 204
    assert callers.owner.delete(f"{path}/versions/2").status_code == 204
    entries = LogEntry.objects.order_by("pk")
    assert all(entry.is_change() for entry in entries)
    assert [entry.object_id for entry in entries] == [str(dataset.pk), str(query.pk), str(dataset.pk)]


def test_creation_is_logged_once_with_its_user(callers: Callers, db: None) -> None:
    for _ in range(2):  # sent again, it does nothing more
        answer = callers.owner.post("/collections", {"name": "fruit"}, **{"Idempotency-Key": "once"})
        assert answer.status_code == 201
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr, entry.user.username) == (answer.json()["id"], "fruit", "owner")


def test_many_judgments_are_one_act(callers: Callers, db: None) -> None:
    dataset = make_dataset({f"q{n}": [({"document_id": "d"}, 1)] for n in range(200)})
    edits = [{"query_key": f"q{n}", "doc_ref": {"document_id": "e"}, "relevance_grade": 1} for n in range(200)]
    with CaptureQueriesContext(connection) as statements:
        answer = callers.owner.post(f"/benchmark-datasets/{dataset.pk}/judgments/bulk", {"judgments": edits})
    assert answer.status_code == 200, answer.content
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.user.username) == (str(dataset.pk), "owner")
    assert len([query for query in statements if "django_admin_log" in query["sql"]]) == 1


def test_admin_pages_log_their_changes(admin_client: Client, db: None) -> None:
    mapping = make_mapping(make_dataset({"q1": [({"document_id": "d1"}, 1)]}), make_collection("c", [{"title": "a"}]))
    benchmark = make_benchmark(mapping, [0.5])
    run = benchmark.runs.get()
    LogEntry.objects.all().delete()
    form = {"run": run.pk, "name": "main", "reason": "It is what we serve."}
    assert admin_client.post(reverse("admin:benchmarks_baseline_add"), form).status_code == 302
    assert "Pin a run as baseline" in history_page(run, admin_client)
    acts = {"action": "resolve_selected", "_selected_action": [str(mapping.pk)]}
    admin_client.post(build_list_url(Mapping), acts)
    assert LogEntry.objects.get(object_id=str(mapping.pk)).user.username == "admin"
    refused = {"action": "cancel_selected", "_selected_action": [str(benchmark.pk)]}
    admin_client.post(build_list_url(Benchmark), refused)
    assert not LogEntry.objects.filter(object_id=str(benchmark.pk)).exists()
    admin_client.post(change_url(mapping.collection), {"name": "renamed"})
    assert "Changed Name." in history_page(mapping.collection, admin_client)


def test_user_with_log_entries_cannot_be_deleted(admin_client: Client, admin_user: User) -> None:
    """The log would go along: the account is made inactive."""
    ada = User.objects.create_user("ada", is_staff=True)
    collection = Collection.objects.create(name="fruit")
    delete = reverse("admin:auth_user_delete", args=[ada.pk])
    assert admin_client.get(delete).status_code == 200
    LogEntry.objects.log_actions(ada.pk, [collection], 2, "Changed.", single_object=True)
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=ada.pk).exists()


def test_superusers_read_log_entries_of_deleted_rows(admin_client: Client, admin_user: User) -> None:
    collection = Collection.objects.create(name="<b>fruit</b>")
    note(admin_user, [collection], "Looked at.")
    path = change_url(collection)
    assert admin_client.post(reverse("admin:collections_collection_delete", args=[collection.pk]), {"post": "yes"})
    every = build_list_url(LogEntry)
    page = admin_client.get(every).content.decode()
    assert "Looked at." in page
    assert "deleted" in page
    assert "&lt;b&gt;fruit" in page
    assert page.count(f'href="{path}"') == 1, "of the deletion there is no link"
    for hit, count in (({"q": str(collection.pk)}, 2), ({"q": "nobody"}, 0), ({"action_flag__exact": 3}, 1)):
        assert len(admin_client.get(every, hit).context["cl"].result_list) == count, hit
    entry = LogEntry.objects.latest("pk")
    assert admin_client.get(change_url(entry)).status_code == 200
    assert admin_client.post(change_url(entry), {"object_repr": "nothing"}).status_code == 403
    assert (
        admin_client.post(reverse("admin:admin_logentry_delete", args=[entry.pk]), {"post": "yes"}).status_code == 403
    )
    assert LogEntry.objects.count() == 2
