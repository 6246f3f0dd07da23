"""Who gets where: no one without being staff, staff with permission, and no one to what someone else owns."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from apps.collections.models import Collection
from apps.operations.models import Operation
from apps.records.models import Benchmark
from apps.retrieval.models import Index
from benchbench.site.panels import build_list_url, change_url
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.rankings import add_ranking
from tests.staff import MakeStaff


@pytest.fixture
def benchmark_of(db: None) -> Callable[[User | None], Benchmark]:
    """Make a benchmark, with everything that it depends on, that belongs to a user."""

    def make(owner: User | None) -> Benchmark:
        collection = make_collection("hidden shelf", [{"title": "On pears"}], owner=owner)
        dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, owner=owner)
        mapping = make_mapping(dataset, collection, owner=owner)
        benchmark = make_benchmark(mapping, [0.5], owner=owner)
        document = collection.documents.get()
        add_ranking(benchmark.runs.get(), dataset.queries.get(), [document.pk], scores=[1.0])
        return benchmark

    return make


def pages_of(benchmark: Benchmark) -> list[str]:
    """Return every page that reports something of a benchmark, or of what it depends on."""
    run = benchmark.runs.get()
    mapping = benchmark.mapping
    rows = (
        benchmark,
        run,
        run.query_results.get(),
        run.evaluations.get(),
        mapping,
        mapping.collection,
        mapping.collection.documents.get(),
        mapping.dataset,
        mapping.dataset.versions.get(),
        mapping.dataset.queries.get(),
        mapping.dataset.queries.get().judgments.get(),
    )
    names = ("admin:benchmark_results", "admin:benchmark_live")
    return [*(change_url(row) for row in rows), *(reverse(name, args=[benchmark.pk]) for name in names)]


def test_rows_of_other_owners_appear_in_no_list(
    client_of_ada: Client, make_staff: MakeStaff, benchmark_of: Callable
) -> None:
    benchmark = benchmark_of(make_staff("grace"))
    assert benchmark.name not in client_of_ada.get(build_list_url(Benchmark)).content.decode()
    assert benchmark.name not in client_of_ada.get(reverse("admin:index")).content.decode()
    collection = benchmark.mapping.collection
    assert collection.name not in client_of_ada.get(build_list_url(type(collection.documents.get()))).content.decode()


@pytest.mark.parametrize("method", ["owner", "team", "nobody's", "sees all"])
@pytest.mark.thorough
def test_own_team_and_nobodys_rows_are_seen(
    client: Client, make_staff: MakeStaff, benchmark_of: Callable, method: str
) -> None:
    ada, grace = make_staff("ada"), make_staff("grace")
    benchmark = benchmark_of({"owner": ada, "nobody's": None}.get(method, grace))
    if method == "team":
        team = Group.objects.create(name="search")
        ada.groups.add(team)
        mapping = benchmark.mapping
        for row in (benchmark, mapping, mapping.collection, mapping.dataset):
            row.team = team
            row.save()
    if method == "sees all":
        ada.is_superuser = True
        ada.save()
    client.force_login(ada)
    for page in pages_of(benchmark):
        assert client.get(page).status_code == 200, page


def test_a_shared_row_links_only_what_opens(
    client_of_ada: Client, ada: User, make_staff: MakeStaff, benchmark_of: Callable
) -> None:
    """It names what it was made from, which need not be shared, or be of a kind that its reader may view."""
    benchmark, team = benchmark_of(make_staff("grace")), Group.objects.create(name="search")
    run, mapping = benchmark.runs.get(), benchmark.mapping
    index = Index.objects.create(collection=mapping.collection, name="words", encoder="", owner=mapping.owner)
    benchmark.runs.update(index=index)
    Benchmark.objects.update(team=team)
    ada.groups.add(team)
    pages = [reverse("admin:benchmark_results", args=[benchmark.pk]), change_url(run)]
    pages += [change_url(row) for row in (benchmark, run.query_results.get(), run.evaluations.get())]
    sources = (mapping, mapping.collection, mapping.dataset, index)

    def list_links() -> list[str]:
        text = "".join(client_of_ada.get(page).text for page in pages)
        return [str(source) for source in sources if f'href="{change_url(source)}"' in text and str(source) in text]

    assert list_links() == []
    for source in sources:
        type(source).objects.update(team=team)
    assert list_links() == [str(source) for source in sources]
    ada.user_permissions.set(Permission.objects.filter(codename__in=["view_run", "view_queryresult", "view_benchmark"]))
    assert list_links() == []


def test_permissions_of_one_room_are_offered_nothing_refused(
    client_of_ada: Client, ada: User, benchmark_of: Callable
) -> None:
    benchmark = benchmark_of(ada)
    operation = Operation.objects.create(kind="benchmark", subject_id=benchmark.pk)
    measures, history = (
        reverse(f"admin:{name}", args=[row.pk])
        for name, row in (("benchmark_measures", benchmark), ("dataset_history", benchmark.mapping.dataset))
    )
    links = {
        reverse("admin:index"): (reverse("admin:new_evaluation"), history),
        change_url(benchmark): (reverse("admin:operation_progress", args=[operation.pk]),),
    }
    for page, offered in links.items():
        text = client_of_ada.get(page).text
        assert [f'"{link}"' in text for link in offered] == [True] * len(offered)
    ada.user_permissions.set(
        Permission.objects.filter(content_type__app_label="benchmarks").exclude(codename="add_benchmark")
    )
    for page, offered in links.items():
        text = client_of_ada.get(page).text
        assert [f'"{link}"' in text for link in offered] == [False] * len(offered)
    assert measures in client_of_ada.get(reverse("admin:benchmark_results", args=[benchmark.pk])).text
    assert client_of_ada.get(measures).status_code == 200


def test_one_is_not_counted_as_many(admin_client: Client, benchmark_of: Callable) -> None:
    nouns = "querie|run|document|judgment|operation|benchmark|version|pair|result|unit|chunk"
    for page in [*pages_of(benchmark_of(None)), reverse("admin:index")]:
        displayed = re.sub(r"<[^>]+>", "", admin_client.get(page).content.decode())
        assert not re.search(rf"(?<![\d.,])1 ({nouns})s\b", displayed), page


def test_facts_are_not_edited_by_hand(client_of_ada: Client, benchmark_of: Callable) -> None:
    benchmark = benchmark_of(None)
    run = benchmark.runs.get()
    for row, status in ((run.evaluations.get(), 403), (benchmark.mapping.dataset.queries.get(), 405)):
        assert client_of_ada.post(change_url(row), {"text": "other", "query_count": 7}).status_code == status
        assert client_of_ada.get(reverse(f"admin:{row._meta.label_lower.replace('.', '_')}_add")).status_code == 403
    client_of_ada.post(change_url(run), {"label": "best of all"})
    run.refresh_from_db()
    assert run.label != "best of all"
    client_of_ada.post(change_url(benchmark), {"name": "Renamed", "description": "", "status": "pending", "seed": "1"})
    benchmark.refresh_from_db()
    assert (benchmark.name, benchmark.status, benchmark.seed) == ("Renamed", "completed", 42)


def test_user_without_full_view_cannot_change_the_owner(
    client_of_ada: Client, ada: User, make_staff: MakeStaff
) -> None:
    collection = make_collection("mine", owner=ada)
    client_of_ada.post(change_url(collection), {"name": "still mine", "owner": make_staff("grace").pk})
    collection.refresh_from_db()
    assert (collection.name, collection.owner) == ("still mine", ada)


def test_a_row_is_shared_with_ones_own_teams_alone(client_of_ada: Client, ada: User) -> None:
    mine, remaining, before = (Group.objects.create(name=name) for name in ("mine", "others", "before"))
    ada.groups.add(mine)
    collection = make_collection("mine")
    Collection.objects.update(owner=ada, team=before)
    page = client_of_ada.get(change_url(collection)).content.decode()
    assert [f">{name}</option>" in page for name in ("mine", "others", "before")] == [True, False, True]
    for team, stored in ((remaining, before), (before, before), (mine, mine), (before, mine)):
        client_of_ada.post(change_url(collection), {"name": "mine", "team": team.pk})
        collection.refresh_from_db()
        assert collection.team == stored


def test_user_names_require_permission_to_view_users(client_of_ada: Client, ada: User) -> None:
    ada.user_permissions.add(Permission.objects.get(codename="view_all_collection"))
    requests = {"app_label": "collections", "model_name": "collection", "field_name": "owner", "term": "a"}
    assert client_of_ada.get(reverse("admin:autocomplete"), requests).status_code == 403


def test_duplicate_name_is_a_form_error(client_of_ada: Client, ada: User) -> None:
    for name in ("first", "second"):
        Collection.objects.create(name=name, owner=ada)
    second = Collection.objects.get(name="second")
    response = client_of_ada.post(change_url(second), {"name": "first"})
    assert response.status_code == 200
    assert "already exists" in response.content.decode()


def test_object_in_use_is_not_deleted_and_page_explains(client_of_ada: Client, benchmark_of: Callable) -> None:
    collection = benchmark_of(None).mapping.collection
    url = reverse("admin:collections_collection_delete", args=[collection.pk])
    assert client_of_ada.get(url).status_code == 200
    response = client_of_ada.post(url, {"post": "yes"}, follow=True)
    assert "it is used by" in response.content.decode()
    assert Collection.objects.filter(pk=collection.pk).exists()


def test_unused_objects_can_be_deleted(client_of_ada: Client) -> None:
    collection = make_collection("unused", [{"title": "a"}])
    client_of_ada.post(reverse("admin:collections_collection_delete", args=[collection.pk]), {"post": "yes"})
    assert not Collection.objects.exists()


def test_a_list_with_search_offers_no_one_elses_rows(client_of_ada: Client, make_staff: MakeStaff) -> None:
    for name, owner in (("my shelf", None), ("hidden shelf", make_staff("grace"))):
        Collection.objects.create(name=name, owner=owner)
    requests = {"app_label": "mappings", "model_name": "mapping", "field_name": "collection", "term": "shelf"}
    result = client_of_ada.get(reverse("admin:autocomplete"), requests).json()["results"]
    assert [one["text"] for one in result] == ["my shelf"]


@pytest.mark.parametrize("alone", [{}, {"is_active": False}, {"is_superuser": True}])
def test_permissions_are_those_of_the_user_and_the_groups(
    make_staff: MakeStaff, django_assert_num_queries: Any, alone: dict[str, bool]
) -> None:
    """As Django's own backend has them, in one query."""
    team = Group.objects.create(name="team")
    team.permissions.add(*Permission.objects.filter(codename__startswith="view_all"))
    user = make_staff("ada", may=("view",))
    user.groups.add(team)
    User.objects.filter(pk=user.pk).update(**alone)
    expected = ModelBackend().get_all_permissions(User.objects.get(pk=user.pk))
    assert bool(expected) == ("is_active" not in alone)
    result = User.objects.get(pk=user.pk)
    with django_assert_num_queries({"is_active": 0, "is_superuser": 2}.get(next(iter(alone), ""), 1)):
        assert result.get_all_permissions() == expected


HOME = "/admin/rq/"


@pytest.mark.parametrize(("codename", "sees"), [("view_benchmark", True), (None, False)])
def test_groups_beside_the_judges_count(codename: str | None, sees: bool, roles: None) -> None:
    team = Group.objects.create(name="readers")
    team.permissions.set(Permission.objects.filter(codename=codename))
    judge = User.objects.create_user("jim", is_staff=True)
    judge.groups.set([team, Group.objects.get(name="judge")])
    assert judge.has_perm("benchmarks.view_benchmark") == sees
    assert judge.has_perm("judging.add_grade")


def test_superusers_alone_have_the_queues_and_the_link(admin_client: Client, client_of_ada: Client) -> None:
    assert HOME not in client_of_ada.get(reverse("admin:workers")).content.decode()
    assert HOME in admin_client.get(reverse("admin:workers")).content.decode()
    home = admin_client.get(HOME)
    assert home.status_code == 200
    assert reverse("django_rq:home_json") in home.content.decode()
    for name in ("jobs", "failed_jobs", "workers"):
        assert admin_client.get(reverse(f"django_rq:{name}", args=[0])).status_code == 200


def test_there_is_no_second_set_of_queue_pages() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("admin:django_rq_home")
