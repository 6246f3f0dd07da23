"""Two users who edit one row at once: fields are merged, and a field that both changed is refused with a name."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import DateTimeField, Model, TextField
from django.test import Client, RequestFactory
from django.urls import resolve

from apps.datasets.models import Dataset, Query
from apps.records.models import Schedule
from benchbench.site.merging import MergingForm
from benchbench.site.panels import change_url
from tests.admin.addresses import make_world, paths
from tests.admin.form_parser import end_lines, open_form
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule
from tests.sessions import elsewhere, until_waited_for

STALE = "after you opened the page"


@pytest.fixture
def ann(admin_client: Client) -> Client:
    return admin_client


@pytest.fixture
def bob(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("bob"))
    return client


def make_rows() -> dict[str, Any]:
    dataset, collection = make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}])
    benchmark = make_benchmark(make_mapping(dataset, collection), [0.5])
    schedule = make_schedule(benchmark, name="nightly")
    people = {"user": User.objects.create_user("eve", is_staff=True), "group": Group.objects.create(name="crew")}
    return {"dataset": dataset, "collection": collection, "benchmark": benchmark, "schedule": schedule, **people}


# The fields that ann and bob change, by the kind of row.
PAIRS = {
    "dataset": ("name", "description"),
    "collection": ("name", "description"),
    "benchmark": ("name", "description"),
    "schedule": ("name", "cron"),
    "user": ("first_name", "last_name"),
    "group": ("name", "permissions"),
}
VALUES = {"cron": "5 5 * * *", "permissions": "1"}


def changed(form: dict[str, list[str]], field: str, value: str = "new") -> dict[str, list[str]]:
    return form | {field: [VALUES.get(field, value)]}


@pytest.mark.parametrize("kind", PAIRS)
def test_changes_of_different_fields_both_stay(ann, bob, kind):
    row = make_rows()[kind]
    first, second = PAIRS[kind]
    address = change_url(row)
    form = open_form(ann, address)
    assert any(name.startswith("initial-") for name in form), form
    assert ann.post(address, changed(form, first)).status_code == 302
    assert bob.post(address, changed(form, second)).status_code == 302
    row.refresh_from_db()
    assert getattr(row, first) == "new"
    stored = getattr(row, second)
    assert stored.filter(pk=1).exists() if second == "permissions" else stored == VALUES.get(second, "new")


@pytest.mark.parametrize("kind", PAIRS)
def test_stale_change_of_the_same_field_is_refused(ann, bob, kind):
    row = make_rows()[kind]
    field, second = PAIRS[kind]
    address = change_url(row)
    form = open_form(ann, address)
    ann.post(address, changed(form, field, "by ann"))
    refused = bob.post(address, changed(changed(form, field, "by bob"), second))
    page = refused.content.decode()
    assert refused.status_code == 200
    assert STALE in page
    assert "admin (Changed" in page
    assert "by ann" in page
    row.refresh_from_db()
    assert getattr(row, field) == "by ann"


def test_refused_value_replaces_the_other_if_sent_again(ann, bob):
    dataset = make_rows()["dataset"]
    address = change_url(dataset)
    form = open_form(ann, address)
    ann.post(address, changed(form, "description", "by\r\nann"))
    refused = bob.post(address, changed(form, "description", "by bob"))
    parser_client = _RepeatingClient(refused)
    again = open_form(parser_client, address)
    assert again["description"] == ["by bob"]
    assert bob.post(address, again).status_code == 302
    dataset.refresh_from_db()
    assert dataset.description == "by bob"


class _RepeatingClient:
    """A client that shows one answer again."""

    def __init__(self, answer):
        self.answer = answer

    def get(self, *_, **__):
        return self.answer


def test_form_without_shown_values_overwrites(ann):
    dataset = make_rows()["dataset"]
    assert ann.post(change_url(dataset), {"name": "by a program", "owner": "", "team": ""}).status_code == 302
    dataset.refresh_from_db()
    assert dataset.name == "by a program"


def test_forms_sent_back_unchanged_change_nothing(client, db):
    """Every form of a row, also where texts end as only programs store them."""
    ada = User.objects.create_superuser("ada")
    client.force_login(ada)
    make_world(ada)
    Schedule.objects.update(rules="floors: {RR: 0.1}")
    tried = set()
    for name, path in paths(ada).items():
        if not name.partition(" ")[0].endswith("_change") or not is_form(form := open_form(client, path)):
            continue
        row = find_row(path)
        texts = [field.name for field in row._meta.fields if isinstance(field, TextField) and field.name in form]
        type(row)._base_manager.filter(pk=row.pk).update(
            **{name: f"{getattr(row, name) or '# words'}\r\n# more \n\n" for name in texts}
        )
        before = read_values(row)
        answer = client.post(path, open_form(client, path))
        assert answer.status_code == 302, (path, answer.context["errors"])
        assert read_values(row) == before, path
        tried.add(type(row).__name__)
    assert tried >= {"Schedule", "Dataset", "Collection", "Benchmark", "User", "Group"}, tried


def is_form(form: dict[str, list[str]]) -> bool:
    return any(name.startswith("initial-") for name in form)


def find_row(path: str) -> Model:
    match = resolve(path)
    return match.func.model_admin.model._base_manager.get(pk=match.kwargs["object_id"])


def read_values(row: Model) -> dict[str, Any]:
    """Return what is stored, with texts as forms read them, without times."""
    row.refresh_from_db()
    fields = (field for field in row._meta.fields if not isinstance(field, DateTimeField))
    values = {field.name: field.value_from_object(row) for field in fields}
    return {name: end_lines(value).strip() if isinstance(value, str) else value for name, value in values.items()}


def edit_address(query: Query) -> str:
    return f"/admin/datasets/query/{query.pk}/edit/"


@pytest.fixture
def drafted(ann: Client) -> Query:
    """Return a query that only the draft has."""
    dataset = make_rows()["dataset"]
    ann.post(f"/admin/datasets/dataset/{dataset.pk}/queries/add/", {"query_key": "new", "query_text": "old text"})
    return dataset.queries.get(key="new")


def test_two_editors_of_a_draft_query(ann, bob, drafted):
    form = open_form(ann, edit_address(drafted))
    assert ann.post(edit_address(drafted), changed(form, "query_text", "by ann")).status_code == 302
    assert bob.post(edit_address(drafted), changed(form, "notes", "by bob")).status_code == 302
    drafted.refresh_from_db()
    assert (drafted.text, drafted.notes) == ("by ann", "by bob")
    refused = bob.post(edit_address(drafted), changed(form, "query_text", "by bob"))
    assert STALE in refused.content.decode()
    removing = bob.post(edit_address(drafted), {**form, "remove": "1"})
    assert STALE in removing.content.decode()
    drafted.refresh_from_db()
    assert (drafted.text, drafted.notes) == ("by ann", "by bob")


def test_two_judges_of_a_draft_judgment(ann, bob, drafted):
    address = f"/admin/datasets/query/{drafted.pk}/judge/?key=document_id&reference=d1&without_document=1"
    form = open_form(ann, address)
    assert ann.post(address, changed(form, "grade", "2")).status_code == 302
    refused = bob.post(address, changed(form, "grade", "0"))
    assert STALE in refused.content.decode()
    assert drafted.judgments.get(until=None).grade == 2


def test_every_form_of_a_row_merges(admin_user):
    request = RequestFactory().get("/")
    request.user = admin_user
    rows = make_rows().values()
    for model, model_admin in admin.site._registry.items():
        row = next((row for row in rows if isinstance(row, model)), model())
        if model_admin.has_change_permission(request, row) and hasattr(model_admin, "get_form"):
            assert issubclass(model_admin.get_form(request, row, change=True), MergingForm), model


@pytest.mark.django_db(transaction=True)
def test_forms_sent_together_are_merged_in_turn(admin_user):
    """The second waits for the row until the first has stored its change, and then knows it."""
    dataset = make_dataset()
    address, client = change_url(dataset), Client()
    client.force_login(admin_user)
    form = open_form(client, address)
    with transaction.atomic():
        Dataset.objects.select_for_update(no_key=True).get(pk=dataset.pk)
        second = elsewhere(lambda: client.post(address, changed(form, "description", "second")))
        until_waited_for(second)
        Dataset.objects.filter(pk=dataset.pk).update(description="first")
    assert STALE in second.result(60).content.decode()
    dataset.refresh_from_db()
    assert dataset.description == "first"
