"""Every list costs as many queries with thirty rows as with three."""

import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.collections.models import Collection, Document
from apps.datasets.editing.drafts import freeze
from apps.datasets.editing.queries import edit_query
from apps.datasets.models import Judgment, Query
from apps.mappings.models import Mapping, Resolution
from apps.records.models import Baseline, Benchmark, QueryResult
from apps.results.triage.query_page import list_judgments
from benchbench.site.panels import build_list_url, change_url
from tests.drafts import set_judgment
from tests.everywhere import make_row_everywhere
from tests.factories import (
    make_collection,
    make_dataset,
)

MOST_STATEMENTS = 12
OURS = sorted(
    (model for model in admin.site._registry if model.__module__.startswith("apps.")), key=lambda model: model.__name__
)


def queries_for(client: Client, model: type[Model]) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(build_list_url(model))
    assert response.status_code == 200
    explained = [query for query in captured if query["sql"].startswith("EXPLAIN")]
    return len(captured) - 2 * len(explained)  # if there is a next page, the rows are estimated and then counted


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
    assert max(many.values()) <= MOST_STATEMENTS, many


def test_every_list_has_three_columns_on_phones(admin_client: Client, rows: None) -> None:
    counts = {}
    for model in OURS:
        context = admin_client.get(build_list_url(model)).context
        visible = [name for name, _, is_hidden in context["columns"] if not is_hidden]
        counts[model] = len({*visible} - {*context["wide_only"]})
    assert set(counts.values()) <= {1, 2}, counts


def test_every_column_sorts_each_row_once(admin_user: User, rf: RequestFactory, rows: None) -> None:
    """Django sorts a column that has the name of a relation by the related rows, and so repeats a row for each."""
    wrong, tried = [], 0
    for model, owner in admin.site._registry.items():
        unsorted = listed_rows(owner, rf, admin_user)
        assert unsorted.result_list, f"make_row_everywhere makes no {model.__name__}"
        for index, column in enumerate(unsorted.list_display):
            for order in (f"{index}", f"-{index}"):
                tried += 1
                displayed = listed_rows(owner, rf, admin_user, o=order)
                if (displayed.result_count, sorted_keys(displayed)) != (unsorted.result_count, sorted_keys(unsorted)):
                    wrong.append((model.__name__, column, order))
    assert tried > 200
    assert wrong == []


def listed_rows(owner: Any, rf: RequestFactory, user: User, **query: str) -> Any:
    request = rf.get("/", query)
    request.user = user
    return owner.get_changelist_instance(request)


def sorted_keys(displayed: Any) -> list[str]:
    return sorted(str(row.pk) for row in displayed.result_list)


def test_columns_without_a_value_are_hidden(admin_client: Client) -> None:
    dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]}, name="Fruit")
    rows = build_list_url(Query)
    assert set(admin_client.get(rows).context["empty"]) == {"category", "difficulty", "split"}
    assert "category" not in admin_client.get(f"{rows}?o=4").context["empty"], "a sorted column stays"
    Query.objects.filter(dataset=dataset).update(category="apples")
    assert set(admin_client.get(rows).context["empty"]) == {"difficulty", "split"}
    assert admin_client.get(f"{rows}?q=nothing").context["empty"] == []


def test_filters_by_emptiness_speak_of_the_rows(admin_client: Client, rows: None) -> None:
    chips = dict(admin_client.get(build_list_url(Baseline)).context["chips"])
    assert [label for label, *_ in chips["state"]] == ["Current", "Retired"]
    listed = admin_client.get(build_list_url(Baseline, retired_at__isempty=1)).context["cl"]
    assert listed.result_count == Baseline.objects.filter(retired_at=None).count() > 0


def test_lists_that_may_be_long_are_not_counted(admin_client: Client, rows: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        admin_client.get(build_list_url(Document))
    assert not [query for query in captured.captured_queries if "COUNT(" in query["sql"].upper()]


def test_a_search_finds_and_a_filter_narrows(admin_client: Client, rows: None) -> None:
    page = admin_client.get(build_list_url(Collection, q="row 2")).content.decode()
    assert "row 2" in page
    assert "row 1" not in page
    collection = Collection.objects.get(name="row 1")
    listed = admin_client.get(build_list_url(Document, collection__id__exact=collection.pk))
    assert [str(document) for document in listed.context["cl"].result_list] == ["row 1", "row 1, other"]


def test_a_search_is_for_ten_words_at_most(admin_client: Client, admin_user: User, rf: RequestFactory) -> None:
    collection = make_collection("Letters", [{"title": "a b c d e f g h i k, but no more"}])
    words = "a b c d e f g h i k"
    response = admin_client.get(build_list_url(Document, q=f"{words} {' '.join('lmnopqrs' * 5)}"))
    assert [str(document) for document in response.context["cl"].result_list] == [str(collection.documents.get())]
    assert "Searched for the first 10 of 50 words. Quote a phrase" in response.content.decode()
    for query, hit in ((words, 1), (f"{words[:-1]} x", 0), (f'x "{words}, but no more"', 0), (f'"{words}, but"', 1)):
        response = admin_client.get(build_list_url(Document, q=query))
        assert (len(response.context["cl"].result_list), "Searched for" in response.content.decode()) == (hit, False)


def test_every_list_that_searches_bounds_the_words(admin_user: User, rf: RequestFactory, db: None) -> None:
    """So do the choices of a field and the search of the whole site, which ask the same method."""
    request = rf.get("/")
    request.user = admin_user
    searching = {owner for owner in admin.site._registry.values() if owner.get_search_fields(request)}
    assert len(searching) > 15
    for owner in searching:
        rows, _ = owner.get_search_results(request, owner.get_queryset(request), "kiwi " * 50)
        assert str(rows.query).lower().count("kiwi") <= 10 * len(owner.get_search_fields(request)), owner


def test_the_palette_finds_a_few_rows_of_each_model(admin_client: Client, rows: None) -> None:
    for number in range(7):
        make_collection(f"shelf {number}")
    with CaptureQueriesContext(connection) as captured:
        actual = admin_client.get(reverse("admin:search"), {"s": "shelf", "extended": "1"}).context["results"]
    assert [result.title for result in actual] == [f"shelf {number}" for number in range(5)]
    assert len(captured) <= MOST_STATEMENTS
    [benchmark] = Benchmark.objects.filter(name="row 2")
    links = [
        str(result.link) for result in admin_client.get(reverse("admin:search"), {"s": "row 2"}).context["results"]
    ]
    assert reverse("admin:benchmark_results", args=[benchmark.pk]) in links
    assert change_url(benchmark.runs.all()[0]) in links
    lists = admin_client.get(reverse("admin:search"), {"s": "Mappings"}).context["results"]
    assert [str(result.link) for result in lists] == [build_list_url(Mapping)]
    assert admin_client.get(reverse("admin:search"), {"s": "r"}).content == b""


def test_the_palette_hides_rows_of_others(client: Client, make_staff: Any, rows: None) -> None:
    def find(user: User) -> set[str]:
        client.force_login(user)
        return {result.description for result in client.get(reverse("admin:search"), {"s": "row 2"}).context["results"]}

    ownerless = {"collection", "document", "dataset", "index"}  # documents: of the collection
    assert find(make_staff("ada")) == ownerless
    assert find(User.objects.create_user("newcomer", is_staff=True)) == set()


def test_judgment_list_shows_current_judgments_with_their_dataset(admin_client: Client) -> None:
    dataset = make_dataset({"q1": [({"document_id": "kept"}, 1), ({"document_id": "changed"}, 1)]}, name="Fruit")
    set_judgment(dataset, "q1", {"document_id": "changed"}, 2)
    freeze(dataset)
    set_judgment(dataset, "q1", {"document_id": "drafted"}, 3)

    def listed(**requested: str) -> list[tuple[str, str, str]]:
        displayed = admin_client.get(build_list_url(Judgment, **requested)).context["cl"]
        owner = displayed.model_admin
        return sorted((row.reference, owner.dataset(row), owner.versions(row)) for row in displayed.result_list)

    now = [("changed", "Fruit", "since v2"), ("drafted", "Fruit", "since v3"), ("kept", "Fruit", "since v1")]
    assert listed() == now
    assert listed(of="all") == sorted([*now, ("changed", "Fruit", "v1")])
    assert 'href="?of=all"' in admin_client.get(build_list_url(Judgment)).content.decode()
    edit_query(dataset.queries.get(), {"text": "Worded anew?"})
    assert [row[2] for row in listed()] == ["since v3"] * 3
    ended = dataset.queries.get(since=1)
    assert list_judgments(ended, [], None)["every"] == build_list_url(Judgment, query__id__exact=ended.pk, of="all")


def test_list_page_title_names_its_model(admin_client: Client) -> None:
    for model, name in ((Collection, "Collections"), (QueryResult, "Query results"), (User, "Users")):
        assert f"{name} | BenchBench</title>" in admin_client.get(build_list_url(model)).content.decode()


def test_filters_are_in_a_panel_chosen_ones_above(admin_client: Client) -> None:
    def read(address: str) -> list[list[str]]:
        areas = admin_client.get(address).text.split('id="changelist-filter"')
        return [re.findall(r'class="bb-chip"[^>]*>\s*([^<]+?)\s*<', area) for area in areas]

    every = ["Human", "Language model", "Import"]
    assert [labels[-3:] for labels in read(build_list_url(Judgment))] == [[], every]
    assert [labels[-3:] for labels in read(build_list_url(Judgment, source__exact="llm"))] == [
        ["Language model"],
        every,
    ]


def test_a_filter_offers_the_newest_and_the_chosen(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchbench.site.lists.MOST_CHOICES", 3)
    first, *_ = [make_dataset({"q1": []}, name=name) for name in ("A", "B", "C", "D", "E")]

    def read(**filters: object) -> list[str]:
        chips = dict(admin_client.get(build_list_url(Query, **filters)).context["chips"])
        return [label for label, *_ in chips["dataset, the newest 3"]]

    assert read() == ["E", "D", "C"]
    assert read(dataset__id__exact=first.pk) == ["A", "E", "D", "C"]
    assert admin_client.get(f"{build_list_url(Query)}?dataset__id__exact=x").status_code == 400
    make_dataset({"q1": []}, name="F")
    monkeypatch.setattr("benchbench.site.lists.MOST_CHOICES", 50)
    chips = dict(admin_client.get(build_list_url(Query)).context["chips"])
    assert len(chips["dataset"]) == 6


def test_chips_of_choices_are_sentence_case(admin_client: Client) -> None:
    chips = {model: dict(admin_client.get(build_list_url(model)).context["chips"]) for model in (Judgment, Resolution)}
    assert [label for label, *_ in chips[Resolution]["outcome"]] == [
        "Resolved",
        "Ambiguous",
        "Not found",
        "Invalid reference",
    ]
    assert [label for label, *_ in chips[Judgment]["source"]] == ["Human", "Language model", "Import"]
    fields = [field for model in apps.get_models() for field in model._meta.fields]
    labels = {str(label) for field in fields for _, label in field.choices or ()}
    assert [label for label in labels if " " in label and label.istitle()] == [], "Django makes these of bare names"


def test_page_of_a_query_is_titled_by_its_text(admin_client: Client) -> None:
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]}, name="Fruit")
    dataset.queries.update(text="does tea help sleep")
    query = dataset.queries.get()
    page = admin_client.get(change_url(query)).text
    assert "does tea help sleep · q1 | BenchBench</title>" in page
    assert re.search(r'class="bb-title-part"[^>]*>does tea help sleep · q1<', page)
    assert "query</span> does tea help sleep · q1" in admin_client.get(change_url(query.judgments.get())).text
    dataset.queries.update(text="q1")
    assert "q1 | BenchBench</title>" in admin_client.get(change_url(query)).text
