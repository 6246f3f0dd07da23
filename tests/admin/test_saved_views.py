"""Views of lists under a name: what they show, who sees and changes them, and what they refuse."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from apps.accounts.models import SavedView
from apps.accounts.saving import MAX_VIEWS
from apps.datasets.models import Dataset
from apps.records.models import Benchmark, Run
from benchbench.site.panels import build_list_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.staff import MakeStaff

RUNS = reverse("admin:benchmarks_run_changelist")


@pytest.fixture
def team(db: None) -> Group:
    return Group.objects.create(name="search")


@pytest.fixture
def runs(db: None) -> None:
    mapping = make_mapping(make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}]))
    make_benchmark(mapping, [0.5, 0.6], measures=["RR"])


@pytest.fixture
def client_of_grace(make_staff: MakeStaff, team: Group) -> Client:
    return login(make_staff("grace"), team)


def login(user: User, *teams: Group) -> Client:
    user.groups.add(*teams)
    client = Client()
    client.force_login(user)
    return client


def save(client: Client, address: str = RUNS, *, name: str = "Mine", act: str = "save", **values: Any) -> Any:
    return client.post(address, {"_view": act, "name": name, **values})


def find_messages(client: Client, answer: Any) -> str:
    return " ".join(str(message) for message in client.get(answer["Location"]).context["messages"])


def address_of(view: SavedView, model: type[Model] = Run) -> str:
    return build_list_url(model, view=view.pk)


def find_hidden(page: Any) -> set[str]:
    return {name for name, _, is_hidden in page.context["columns"] if is_hidden}


@pytest.mark.parametrize("model", [Benchmark, Run, Dataset])
def test_a_view_opens_with_filters_order_and_columns(client_of_ada: Client, runs: None, model: type[Model]) -> None:
    filters = {"source_format": "beir"} if model is Dataset else {"status__exact": "failed", "measure": "RR"}
    address = build_list_url(model, **filters, o="-2", p="0")
    client_of_ada.post(address, {"_columns": "1", "column": ["value"], "measure": filters.get("measure", "")})
    save(client_of_ada, address)
    client_of_ada.cookies.pop("hidden_columns")
    page = client_of_ada.get(address_of(SavedView.objects.get(), model), follow=True)
    listing = page.context["cl"]
    assert {**filters, "o": "-2"}.items() <= listing.params.items()
    assert "p=" not in SavedView.objects.get().query, "a view opens at its first page"
    assert "owner" in find_hidden(page) or model is Run
    assert not {"value", "results_link", "label", "name"} & find_hidden(page)
    assert ("measured" not in find_hidden(page)) == ("measure" in filters or model is Dataset)
    assert not page.context["is_changed"]


def test_a_change_of_columns_waits_for_update(client_of_ada: Client, runs: None) -> None:
    save(client_of_ada)
    view = SavedView.objects.get()
    opened = client_of_ada.get(address_of(view))["Location"]
    answer = client_of_ada.post(opened, {"_columns": "1", "column": ["top_k"]})
    assert "hidden_columns" not in answer.cookies
    page = client_of_ada.get(answer["Location"])
    assert (page.context["is_changed"], "latency" in find_hidden(page)) == (True, True)
    assert "latency" not in find_hidden(client_of_ada.get(address_of(view), follow=True))
    save(client_of_ada, answer["Location"], act="update")
    assert "latency" in find_hidden(client_of_ada.get(address_of(view), follow=True))
    assert "latency" not in find_hidden(client_of_ada.get(RUNS)), "the list itself stays as it was"
    answer = save(client_of_ada, opened, act="delete")
    assert (answer["Location"], SavedView.objects.exists()) == (RUNS, False)


def test_a_private_view_is_hidden_from_others(client_of_ada: Client, admin_client: Client, runs: None) -> None:
    save(client_of_ada, name="Secret")
    view = SavedView.objects.get()
    opened = client_of_ada.get(address_of(view))["Location"]
    page = admin_client.get(address_of(view))
    assert (page.status_code, "not shared with you" in page.content.decode()) == (404, True)
    page = admin_client.get(opened)
    assert (page.context["saved_views"], page.context["saved_view"]) == ([], None)
    for act in ("update", "delete"):
        assert save(admin_client, opened, act=act).status_code == 403
    assert admin_client.get(build_list_url(Run, view="x")).status_code == 404
    assert SavedView.objects.get() == view


def test_a_shared_view_is_changed_by_editors_alone(
    client_of_grace: Client, make_staff: MakeStaff, team: Group, runs: None
) -> None:
    save(client_of_grace, name="Ours", team=str(team.pk))
    view = SavedView.objects.get()
    assert view.team == team
    viewer, editor = login(make_staff("vera", may=("view",)), team), login(make_staff("ed"), team)
    address = f"{client_of_grace.get(address_of(view))['Location']}&o=1"
    page = viewer.get(address)
    assert (page.context["saved_view"], page.context["may_change_view"], page.context["teams"]) == (view, False, [])
    for act in ("update", "delete"):
        assert save(viewer, address, act=act).status_code == 403
    save(editor, address, act="update")
    view.refresh_from_db()
    assert "o=1" in view.query
    save(editor, address, act="delete")
    assert not SavedView.objects.exists()
    assert login(make_staff("nora", may=()), team).get(address_of(view)).status_code == 403, "who may not see the list"


def test_a_shared_view_outlives_its_owner(
    client_of_grace: Client, client_of_ada: Client, ada: User, team: Group, runs: None
) -> None:
    for name, shared in (("Ours", str(team.pk)), ("Mine", "")):
        save(client_of_grace, name=name, team=shared)
    User.objects.get(username="grace").delete()
    view = SavedView.objects.get()
    assert (view.name, view.owner, view.team) == ("Ours", None, team)
    ada.groups.add(team)
    page = client_of_ada.get(address_of(view), follow=True)
    assert page.context["saved_view"] == view
    assert 'title="for search"' in client_of_ada.get(RUNS).text
    assert page.context["may_change_view"]
    save(client_of_ada, name="Too", team=str(team.pk))
    team.delete()
    assert [(view.name, view.owner, view.team) for view in SavedView.objects.all()] == [("Too", ada, None)]


def test_a_viewer_saves_alone_and_nobody_for_foreign_teams(
    client_of_ada: Client, make_staff: MakeStaff, team: Group, runs: None
) -> None:
    viewer = login(make_staff("vera", may=("view",)), team)
    assert save(viewer, team=str(team.pk)).status_code == 403
    save(viewer)
    assert SavedView.objects.get().owner.username == "vera"
    for foreign in (team.pk, "x", "9" * 30):
        assert "choose another one" in find_messages(client_of_ada, save(client_of_ada, team=str(foreign)))
    assert SavedView.objects.count() == 1


def test_hostile_addresses_are_never_saved(client_of_ada: Client, runs: None) -> None:
    for query in ("benchmark__owner__password__startswith=p", "unknown=1", "id=x", "status__exact__regex=["):
        answer = save(client_of_ada, f"{RUNS}?{query}")
        assert (answer.status_code, "Open it without this filter" in answer.content.decode()) == (400, True), query
    answer = save(client_of_ada, f"{RUNS}?q={'x' * 3000}")
    assert "remove some" in find_messages(client_of_ada, answer)
    for name in ("", " ", "a\x07b", "x" * 101):
        assert "name" in find_messages(client_of_ada, save(client_of_ada, name=name))
    assert not SavedView.objects.exists()
    save(client_of_ada, f"{RUNS}?hide=<b>.latency.measured&measure=<i>", name="<script>alert(1)</script>")
    page = client_of_ada.get(address_of(SavedView.objects.get()), follow=True)
    assert find_hidden(page) == {"latency", "measured"}
    text = page.content.decode()
    assert not re.search(r"<script>alert|<b>\.|<i>", text)
    assert "&lt;script&gt;alert(1)" in text


def test_a_name_is_taken_once_and_views_are_bounded(client_of_ada: Client, ada: User, runs: None) -> None:
    save(client_of_ada)
    assert "choose another name, or open" in find_messages(client_of_ada, save(client_of_ada))
    assert "only in case" in find_messages(client_of_ada, save(client_of_ada, name="mine"))
    save(client_of_ada, build_list_url(Benchmark))
    assert SavedView.objects.count() == 2, "each list has its own names"
    rows = [SavedView(owner=ada, listed="benchmarks.run", name=f"{number}") for number in range(1, MAX_VIEWS)]
    SavedView.objects.bulk_create(rows)
    assert "delete one first" in find_messages(client_of_ada, save(client_of_ada, name="More"))


def test_a_view_that_no_longer_fits_can_be_deleted(client_of_ada: Client, ada: User, runs: None) -> None:
    """Its filter or a column went since."""
    view = SavedView.objects.create(owner=ada, listed="benchmarks.run", name="Old", query="gone=1&hide=gone.latency")
    page = client_of_ada.get(address_of(view), follow=True)
    assert page.status_code == 200
    assert any('The view "Old" does not fit the list' in str(message) for message in page.context["messages"])
    assert (page.context["saved_view"], page.context["may_change_view"]) == (view, True)
    SavedView.objects.update(query="hide=gone.latency")
    assert find_hidden(client_of_ada.get(address_of(view), follow=True)) == {"latency", "measured"}
