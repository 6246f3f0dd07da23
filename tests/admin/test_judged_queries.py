"""Queries and judgments on the pages of a dataset: added, changed, removed, repaired where a document is missing."""

import unicodedata
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.collections.models import Collection
from apps.datasets.editing.drafts import find_draft, freeze
from apps.datasets.models import Dataset, Judgment, Query
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping, Resolution
from apps.mappings.repairing import find_candidates
from apps.mappings.resolving import resolve
from benchbench.site.panels import change_url
from tests.drafts import set_judgment
from tests.factories import make_collection, make_dataset, make_mapping
from tests.site import messages_of, text_of
from tests.staff import MakeStaff

TEXT = "red fruit,\nor a vegetable"


@pytest.fixture
def dataset(ada: User) -> Dataset:
    dataset = make_dataset({"red": [({"document_id": "d1"}, 2)]}, name="fruit", owner=ada)
    Query.objects.update(text=TEXT, slices=["a, b", "c"], filters={"season": ["autumn"]}, evidence=["It is red.", 1])
    return dataset


def add(client: Client, dataset: Dataset, **fields: Any) -> Any:
    return client.post(reverse("admin:query_add", args=[dataset.pk]), fields, follow=True)


def edit(client: Client, query: Query, **changes: Any) -> Any:
    """Post the form as a browser would: every field as it is shown, its lines ended by CRLF, but for `changes`."""
    page = reverse("admin:query_edit", args=[query.pk])
    form = client.get(page).context["form"]
    displayed = {name: str(form[name].value()).replace("\n", "\r\n") for name in form.fields}
    return client.post(page, displayed | changes, follow=True)


def test_a_query_is_added_to_the_draft(client_of_ada: Client, dataset: Dataset, ada: User) -> None:
    assert reverse("admin:query_add", args=[dataset.pk]) in client_of_ada.get(change_url(dataset)).content.decode()
    messages = {"slices": "late\r\n\r\n autumn ", "filters": '{"season": ["autumn"]}', "evidence": '["It is blue."]'}
    page = add(
        client_of_ada, dataset, query_key="blue", query_text="blue fruit\r\nplease", difficulty="hard", **messages
    )
    query = Query.objects.get(key="blue")
    assert (query.text, query.slices, query.filters) == (
        "blue fruit\nplease",
        ["late", "autumn"],
        {"season": ["autumn"]},
    )
    assert (query.evidence, query.difficulty, query.metadata, query.since) == (["It is blue."], "hard", {}, 2)
    assert page.redirect_chain[-1][0] == change_url(query)
    assert "Judge another document" in page.content.decode()
    draft = find_draft(dataset)
    assert draft is not None
    assert reverse("admin:query_add", args=[dataset.pk]) in client_of_ada.get(change_url(draft)).content.decode()


@pytest.mark.parametrize(
    ("changes", "field", "message"),
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
def test_form_shows_errors_at_their_field(
    client_of_ada: Client, dataset: Dataset, changes: dict[str, str], field: str, message: str
) -> None:
    page = add(client_of_ada, dataset, **{"query_key": "blue", "query_text": "blue fruit"} | changes)
    assert message in str(page.context["form"].errors[field])
    assert find_draft(dataset) is None


def test_query_can_be_reworded(client_of_ada: Client, dataset: Dataset) -> None:
    old = Query.objects.get()
    assert reverse("admin:query_edit", args=[old.pk]) in client_of_ada.get(change_url(old)).content.decode()
    page = edit(client_of_ada, old, query_text="crimson fruit")
    new = Query.objects.get(until=None)
    assert page.redirect_chain[-1][0] == change_url(new) != change_url(old)
    assert (new.text, new.slices, new.evidence) == ("crimson fruit", ["a, b", "c"], ["It is red.", 1])
    assert new.judgments.get().grade == 2
    assert change_url(new) in client_of_ada.get(change_url(old)).content.decode(), "the old leads to the new"
    response = client_of_ada.get(reverse("admin:query_edit", args=[old.pk]), follow=True)
    assert "changed in version 2" in response.content.decode()
    assert response.redirect_chain[-1][0] == change_url(old)


def test_saving_an_unchanged_query_opens_no_draft(client_of_ada: Client, dataset: Dataset) -> None:
    query = Query.objects.get()
    assert edit(client_of_ada, query).redirect_chain[-1][0] == change_url(query)
    assert find_draft(dataset) is None
    assert "blank" in str(edit(client_of_ada, query, query_text="  ").context["form"].errors["query_text"])


def test_a_query_is_removed_from_the_draft(client_of_ada: Client, dataset: Dataset) -> None:
    add(client_of_ada, dataset, query_key="blue", query_text="blue fruit")
    page = edit(client_of_ada, Query.objects.get(key="red"), remove="1", query_text="")
    assert page.redirect_chain[-1][0] == change_url(dataset)
    version = freeze(dataset)
    assert [query.key for query in version.queries] == ["blue"]
    assert dataset.versions.get(number=1).queries.get().text == TEXT


TWICE, DELETED, ODD = {"file_name": "pears.md"}, {"document_id": "old/plums.md"}, {"odd": "x"}


@pytest.fixture
def mapping(db: None) -> Mapping:
    """Of four judgments one is resolved, one ambiguous, one names a document that is elsewhere, one is nonsense."""
    declared: list[tuple[Any, int]] = [({"document_id": "apples"}, 1), (TWICE, 3), (DELETED, 2), (ODD, 1)]
    dataset = make_dataset({"q1": declared})
    names = {
        "apples": "apples.md",
        "a/pears": "pears.md",
        "b/pears": "pears.md",
        "plums": "plums.md",
        "figs": "figs.md",
    }
    documents = [{"external_id": key, "title": f"On {key}", "file_name": name} for key, name in names.items()]
    created = create_mapping(dataset, make_collection("library", documents))
    resolve(created)
    created.refresh_from_db()
    return created


def repair_url(mapping: Mapping, doc_ref: dict[str, str]) -> str:
    resolution = Resolution.objects.get(mapping=mapping, judgment__doc_ref=doc_ref)
    return reverse("admin:resolution_repair", args=[resolution.pk])


def offered(client: Client, page: str, **requested: str) -> list[str]:
    return [document.external_id for document in client.get(page, requested).context["candidates"]]


def document_of(mapping: Mapping, name: str) -> int:
    return mapping.collection.documents.get(external_id=name).pk


@pytest.mark.django_db
def test_a_decomposed_file_name_is_a_candidate() -> None:
    collection = make_collection("library", [{"external_id": "a", "file_name": "Übersicht.md"}])
    for form in ("NFC", "NFD"):
        reference = {"uri": unicodedata.normalize(form, "file:///docs/Übersicht.md")}
        assert [one.external_id for one in find_candidates(collection.documents.all(), reference)] == ["a"]


def test_mapping_page_links_to_candidates_for_unresolved_judgments(client_of_ada: Client, mapping: Mapping) -> None:
    page = client_of_ada.get(change_url(mapping)).content.decode()
    assert "Yes, for questions v1: no newer version is frozen, and the collection is unchanged.<" in page
    for doc_ref in (TWICE, DELETED, ODD):
        assert f'href="{repair_url(mapping, doc_ref)}"' in page
    assert offered(client_of_ada, repair_url(mapping, TWICE)) == ["a/pears", "b/pears"]
    assert offered(client_of_ada, repair_url(mapping, DELETED)) == ["plums"], "by the last part of its name"
    assert offered(client_of_ada, repair_url(mapping, ODD)) == []
    assert offered(client_of_ada, repair_url(mapping, ODD), q="ON F") == ["figs"]
    resolution = Resolution.objects.get(judgment__doc_ref=DELETED)
    assert repair_url(mapping, DELETED) in client_of_ada.get(change_url(resolution)).content.decode()
    result = Resolution.objects.get(outcome="resolved")
    answer = client_of_ada.get(reverse("admin:resolution_repair", args=[result.pk]))
    assert answer["Location"] == change_url(result), "there is nothing to repair"


def test_redirecting_or_dropping_judgments_completes_the_mapping(
    client_of_ada: Client, ada: User, mapping: Mapping
) -> None:
    Judgment.objects.filter(doc_ref=TWICE).update(judge="grace", note="Sure.", section_refs=["s1"])
    chosen = {"document": document_of(mapping, "b/pears")}
    answer = client_of_ada.post(repair_url(mapping, TWICE), chosen, follow=True)
    assert answer.redirect_chain == [(change_url(mapping), 302)]
    assert "now names b/pears, in the draft." in messages_of(answer)
    client_of_ada.post(repair_url(mapping, DELETED), {"document": document_of(mapping, "plums")})
    page = client_of_ada.post(repair_url(mapping, ODD), {"drop": "1"}, follow=True).content.decode()
    assert "Draft of version 2 of questions, with 5 changes: 2 judgments added, 3 judgments removed." in page
    assert page.count("changed or removed in v2") == 3
    now = Judgment.objects.get(doc_ref={"document_id": "b/pears"})
    assert (now.grade, now.judge, now.note, now.section_refs) == (3, "grace", "Sure.", ["s1"])
    assert (now.source, now.judged_by) == ("import", ada)
    assert "Import, entered by ada" in text_of(client_of_ada.get(change_url(now.query)))
    to_freeze = reverse("admin:dataset_freeze", args=[mapping.dataset_id])
    assert "Import, entered by ada" in text_of(client_of_ada.get(to_freeze))
    assert "the collection is unchanged. Freeze the draft to include it" in page
    late = client_of_ada.post(repair_url(mapping, TWICE), chosen)
    assert "was changed or removed since" in messages_of(late)

    assert Judgment.objects.filter(until=2).count() == 3, "version 1 keeps them"
    freeze(mapping.dataset)
    resolve(mapping)
    mapping.refresh_from_db()
    assert (mapping.status, mapping.mapped_count, mapping.total_count) == ("resolved", 3, 3)


def test_already_judged_document_is_not_judged_twice(client_of_ada: Client, mapping: Mapping) -> None:
    answer = client_of_ada.post(repair_url(mapping, TWICE), {"document": document_of(mapping, "apples")})
    assert "has the grade 1 for 'q1' already: drop this judgment" in messages_of(answer)
    for nonsense in ({}, {"document": "x"}, {"document": "9" * 18}):
        assert "Choose a document" in messages_of(client_of_ada.post(repair_url(mapping, TWICE), nonsense))
    mapping.collection.documents.filter(external_id="a/pears").update(removed_at="2026-01-01T00:00:00Z")
    response = client_of_ada.post(repair_url(mapping, TWICE), {"document": document_of(mapping, "a/pears")})
    assert "is not in the collection" in messages_of(response)
    mapping.collection.documents.filter(external_id="figs").update(external_id="old/plums.md")
    result = client_of_ada.post(repair_url(mapping, DELETED), {"document": document_of(mapping, "old/plums.md")})
    assert "resolve the mapping again" in messages_of(result)
    assert find_draft(mapping.dataset) is None


def test_page_names_other_mappings_that_resolve_the_reference(client_of_ada: Client, mapping: Mapping) -> None:
    second = make_mapping(mapping.dataset, make_collection("shelf", [{"file_name": "pears.md"}]), name="on the shelf")
    resolve(second)
    assert "on the shelf" in client_of_ada.get(repair_url(mapping, TWICE)).content.decode()
    assert "on the shelf" not in client_of_ada.get(repair_url(mapping, DELETED)).content.decode()


def test_repair_requires_permission_to_change_the_dataset(
    client: Client, client_of_ada: Client, make_staff: MakeStaff, mapping: Mapping
) -> None:
    page, act = repair_url(mapping, TWICE), {"drop": "1"}
    client.force_login(make_staff("viewer", may=("view",)))
    assert client.post(page, act).status_code == 403
    grace = make_staff("grace")
    Dataset.objects.update(owner=grace)
    assert client_of_ada.post(page, act).status_code == 403
    assert "Draft of" not in client_of_ada.get(change_url(mapping)).content.decode()
    Mapping.objects.update(owner=grace)
    assert [client_of_ada.get(page).status_code, client_of_ada.post(page, act).status_code] == [404, 404]
    assert find_draft(mapping.dataset) is None


def test_the_documents_of_another_owners_collection_are_not_offered(
    client_of_ada: Client, make_staff: MakeStaff, mapping: Mapping
) -> None:
    Collection.objects.update(owner=make_staff("grace"))
    assert offered(client_of_ada, repair_url(mapping, TWICE)) == []
    chosen = {"document": document_of(mapping, "b/pears")}
    assert "Choose a document" in messages_of(client_of_ada.post(repair_url(mapping, TWICE), chosen))
    set_judgment(mapping.dataset, "q1", TWICE, 1)
    assert "changed or removed in v2" in client_of_ada.get(change_url(mapping)).content.decode()
