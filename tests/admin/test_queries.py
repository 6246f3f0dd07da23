"""Adding queries, wording them anew and removing them, on the pages of a dataset."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.datasets.editing.drafts import draft_of, freeze
from apps.datasets.models import Dataset, Query
from benchbench.site.panels import change_url
from tests.admin.conftest import MakeStaff
from tests.factories import make_dataset

TEXT = "red fruit,\nor a vegetable"


@pytest.fixture
def dataset(ada: User) -> Dataset:
    dataset = make_dataset({"red": [({"document_id": "d1"}, 2)]}, name="fruit")
    dataset.owner = ada
    dataset.save()
    Query.objects.update(text=TEXT, slices=["a, b", "c"], filters={"season": ["autumn"]}, evidence=["It is red.", 1])
    return dataset


def add(client: Client, dataset: Dataset, **fields: Any) -> Any:
    return client.post(reverse("admin:query_add", args=[dataset.pk]), fields, follow=True)


def edit(client: Client, query: Query, **changes: Any) -> Any:
    """Post the form as a browser would: every field as it is shown, its lines ended by CRLF, but for `changes`."""
    page = reverse("admin:query_edit", args=[query.pk])
    form = client.get(page).context["form"]
    shown = {name: str(form[name].value()).replace("\n", "\r\n") for name in form.fields}
    return client.post(page, shown | changes, follow=True)


def test_a_query_is_added_to_the_draft(client_of_ada: Client, dataset: Dataset, ada: User) -> None:
    assert reverse("admin:query_add", args=[dataset.pk]) in client_of_ada.get(change_url(dataset)).content.decode()
    said = {"slices": "late\r\n\r\n autumn ", "filters": '{"season": ["autumn"]}', "evidence": '["It is blue."]'}
    page = add(client_of_ada, dataset, query_key="blue", query_text="blue fruit\r\nplease", difficulty="hard", **said)
    query = Query.objects.get(key="blue")
    assert (query.text, query.slices, query.filters) == (
        "blue fruit\nplease",
        ["late", "autumn"],
        {"season": ["autumn"]},
    )
    assert (query.evidence, query.difficulty, query.metadata, query.since) == (["It is blue."], "hard", {}, 2)
    assert page.redirect_chain[-1][0] == change_url(query)
    assert "Judge another document" in page.content.decode()
    draft = draft_of(dataset)
    assert draft is not None
    assert reverse("admin:query_add", args=[dataset.pk]) in client_of_ada.get(change_url(draft)).content.decode()


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"query_key": "red"}, "query_key", "has a query"),
        ({"query_key": " "}, "query_key", "required"),
        ({"query_text": " \n"}, "query_text", "blank"),
        ({"category": "x" * 101}, "category", "at most 100"),
        ({"slices": "y" * 101}, "slices", "more than 100"),
        ({"filters": "{"}, "filters", "not JSON"),
        ({"filters": "[]"}, "filters", "must be an object"),
        ({"evidence": "{}"}, "evidence", "must be a list"),
        ({"metadata": '{"a": NaN}'}, "metadata", "not JSON"),
        ({"notes": "a\0b"}, "notes", "Null characters"),
    ],
)
def test_an_error_stands_at_its_field(
    client_of_ada: Client, dataset: Dataset, changes: dict[str, str], field: str, said: str
) -> None:
    page = add(client_of_ada, dataset, **{"query_key": "blue", "query_text": "blue fruit"} | changes)
    assert said in str(page.context["form"].errors[field])
    assert draft_of(dataset) is None


def test_a_query_is_worded_anew(client_of_ada: Client, dataset: Dataset) -> None:
    old = Query.objects.get()
    assert reverse("admin:query_edit", args=[old.pk]) in client_of_ada.get(change_url(old)).content.decode()
    page = edit(client_of_ada, old, query_text="crimson fruit")
    new = Query.objects.get(until=None)
    assert page.redirect_chain[-1][0] == change_url(new) != change_url(old)
    assert (new.text, new.slices, new.evidence) == ("crimson fruit", ["a, b", "c"], ["It is red.", 1])
    assert new.judgments.get().grade == 2
    assert change_url(new) in client_of_ada.get(change_url(old)).content.decode(), "the old leads to the new"
    told = client_of_ada.get(reverse("admin:query_edit", args=[old.pk]), follow=True)
    assert "changed in version 2" in told.content.decode()
    assert told.redirect_chain[-1][0] == change_url(old)


def test_saving_what_is_there_opens_no_draft(client_of_ada: Client, dataset: Dataset) -> None:
    query = Query.objects.get()
    assert edit(client_of_ada, query).redirect_chain[-1][0] == change_url(query)
    assert draft_of(dataset) is None
    assert "blank" in str(edit(client_of_ada, query, query_text="  ").context["form"].errors["query_text"])


def test_a_query_is_removed_from_the_draft(client_of_ada: Client, dataset: Dataset) -> None:
    add(client_of_ada, dataset, query_key="blue", query_text="blue fruit")
    page = edit(client_of_ada, Query.objects.get(key="red"), remove="1", query_text="")
    assert page.redirect_chain[-1][0] == change_url(dataset)
    version = freeze(dataset)
    assert [query.key for query in version.queries] == ["blue"]
    assert dataset.versions.get(number=1).queries.get().text == TEXT


def test_it_is_for_those_who_may_change_the_dataset(
    client: Client, client_of_ada: Client, make_staff: MakeStaff, dataset: Dataset
) -> None:
    query = Query.objects.get()
    pages = [reverse("admin:query_add", args=[dataset.pk]), reverse("admin:query_edit", args=[query.pk])]
    fields = {"query_key": "blue", "query_text": "blue fruit", "remove": "1"}
    for name, may, status in (("grace", ("add", "change", "delete", "view"), 404), ("lin", ("view",), 403)):
        client.force_login(make_staff(name, may=may))
        if name == "lin":
            Dataset.objects.update(owner=None)
            shown = client.get(change_url(dataset)).content.decode() + client.get(change_url(query)).content.decode()
            assert not any(page in shown for page in pages)
        assert [client.post(page, fields).status_code for page in pages] == [status, status]
    assert (Query.objects.count(), draft_of(dataset)) == (1, None)
