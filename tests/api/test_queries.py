"""Queries, judgments and versions over HTTP: every field, every refusal."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from apps.datasets.content import stored_hash
from apps.datasets.editing.drafts import draft_of
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.records import DatasetRecord, JudgmentRecord, QueryRecord
from tests.api.callers import Caller, Callers

APPLE, PEAR = {"document_id": "apple"}, {"document_id": "pear"}
RECORD = DatasetRecord(
    "fruit",
    [QueryRecord("red", "red fruit", [JudgmentRecord(APPLE, 3)], category="colour"), QueryRecord("sour", "sour fruit")],
)
QUERY_FIELDS = {
    *("id", "query_key", "query_text", "slices", "category", "difficulty", "query_type", "split", "filters"),
    *("expected_answer", "evidence", "notes", "metadata", "since", "until"),
}
JUDGMENT_FIELDS = {
    *("id", "query_id", "query_key", "doc_ref", "relevance_grade", "section_refs", "source", "judge", "judged_by_id"),
    *("note", "since", "until", "created_at"),
}


def fruit(caller: Caller) -> tuple[Dataset, str]:
    """Return a dataset of the caller's with a frozen version, and its path."""
    dataset = import_dataset(RECORD, owner=caller.user).version.dataset
    return dataset, f"/benchmark-datasets/{dataset.pk}"


def path_of(path: str, key: str = "red") -> str:
    return f"{path}/queries/{Query.objects.get(key=key, until=None).pk}"


def first_stands(dataset: Dataset) -> bool:
    first = dataset.versions.get(number=1)
    return stored_hash(first) == first.content_hash


def test_it_lists_queries_of_the_newest_state_and_of_any_version(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    page = callers.owner.get(f"{path}/queries").json()
    assert (page["total"], [query["query_key"] for query in page["queries"]]) == (2, ["red", "sour"])
    assert set(page["queries"][0]) == QUERY_FIELDS
    assert callers.owner.get(path_of(path)).json() == page["queries"][0]
    assert callers.owner.get(f"{path}/queries", query_key="sour").json()["total"] == 1
    callers.owner.delete(path_of(path, "sour"))
    totals = [callers.owner.get(f"{path}/queries", **query).json()["total"] for query in ({}, {"version": 1})]
    assert totals == [1, 2]
    assert callers.owner.get(f"{path}/queries", version=3).status_code == 400


def test_it_adds_changes_and_removes_queries_in_the_draft(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    body = {"query_key": "new", "query_text": "new fruit", "filters": {"version": "2"}, "evidence": ["It is new."]}
    added = callers.owner.post(f"{path}/queries", body, idempotency_key="k")
    assert added.status_code == 201, added.content
    facts = added.json()
    assert {key: facts[key] for key in (*body, "since", "until")} == body | {"since": 2, "until": None}
    assert callers.owner.post(f"{path}/queries", body, idempotency_key="k").content == added.content
    again = callers.owner.post(f"{path}/queries", body)
    assert (again.status_code, again.json()["code"], set(again.json()["errors"])) == (
        409,
        "query_exists",
        {"query_key"},
    )
    old = path_of(path)
    changed = callers.owner.ask("PATCH", old, {"query_text": "crimson fruit", "category": ""}).json()
    assert (changed["query_text"], changed["category"], changed["since"]) == ("crimson fruit", "", 2)
    assert f"{path}/queries/{changed['id']}" == path_of(path) != old
    assert callers.owner.get(old).json()["until"] == 2
    for method, sent in (("PATCH", {"notes": "x"}), ("DELETE", None)):
        late = callers.owner.ask(method, old, sent)
        assert (late.status_code, late.json()["code"]) == (409, "outdated")
        assert f"the one of the id {changed['id']}" in late.json()["detail"]
    assert callers.owner.delete(path_of(path)).status_code == 204
    assert first_stands(dataset)


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({}, "query_key", "This field is required."),
        ({"query_key": "k", "query_text": " "}, "query_text", "may not be blank"),
        ({"query_key": "k" * 201, "query_text": "t"}, "query_key", "more than 200 characters"),
        ({"query_key": "k", "query_text": "t", "slices": "a"}, "slices", "Expected a list of items"),
        ({"query_key": "k", "query_text": "t", "slices": [1]}, "slices[0]", "Not a valid string."),
        (
            {"query_key": "k", "query_text": "t", "filters": []},
            "filters",
            "Expected a dictionary of items",
        ),
        ({"query_key": "k", "query_text": "t", "judgments": []}, "judgments", "Unknown key"),
    ],
)
def test_it_names_what_is_wrong_with_a_query(callers: Callers, body: Any, field: str, told: str) -> None:
    dataset, path = fruit(callers.owner)
    answer = callers.owner.post(f"{path}/queries", body)
    assert answer.status_code == 400, answer.content
    assert told in answer.json()["detail"]
    assert field in answer.json()["errors"]
    assert draft_of(dataset) is None


def test_it_states_a_judgment_and_tells_its_fields(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    query = path_of(path)
    body = {"doc_ref": "file:///pear.md", "relevance_grade": 1, "section_refs": ["s1"], "note": "late"}
    answer = callers.owner.post(f"{query}/judgments", body)
    assert answer.status_code == 201, answer.content
    facts = answer.json()
    assert set(facts) == JUDGMENT_FIELDS
    assert {key: facts[key] for key in (*body, "source", "judge", "judged_by_id", "since", "query_key")} == body | {
        "doc_ref": {"uri": "file:///pear.md"},
        "source": "human",
        "judge": "owner",
        "judged_by_id": callers.owner.user.pk,
        "since": 2,
        "query_key": "red",
    }
    assert callers.owner.get(f"{query}/judgments/{facts['id']}").json() == facts
    replaced = callers.owner.post(f"{query}/judgments", body | {"relevance_grade": 0, "source": "llm", "judge": "m-1"})
    assert (replaced.status_code, replaced.json()["id"]) == (200, facts["id"]), "only the draft has that row"
    assert (replaced.json()["relevance_grade"], replaced.json()["judge"]) == (0, "m-1")
    page = callers.owner.get(f"{query}/judgments").json()
    assert [row["relevance_grade"] for row in page["judgments"]] == [3, 0]
    assert callers.owner.get(f"{query}/judgments", version=1).json()["total"] == 1
    assert callers.owner.get(f"{path}/judgments").json() == page
    assert callers.owner.get(f"{path}/judgments", query_key="sour").json()["total"] == 0
    assert first_stands(dataset)


def test_it_changes_and_removes_a_judgment(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    query = path_of(path)
    old = f"{query}/judgments/{Judgment.objects.get().pk}"
    changed = callers.owner.ask("PUT", old, {"relevance_grade": 1})
    assert (changed.status_code, changed.json()["doc_ref"], changed.json()["since"]) == (200, APPLE, 2)
    late = callers.owner.ask("PUT", old, {"relevance_grade": 2})
    assert (late.status_code, late.json()["code"]) == (409, "outdated")
    new = f"{query}/judgments/{changed.json()['id']}"
    assert callers.owner.ask("PUT", new, {"relevance_grade": 2}).json()["id"] == changed.json()["id"]
    assert callers.owner.delete(new).status_code == 204
    assert callers.owner.delete(old).status_code == 409
    assert callers.owner.get(old).json()["until"] == 2
    assert first_stands(dataset)


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"relevance_grade": 1}, "doc_ref", "This field is required."),
        ({"relevance_grade": 1, "doc_ref": {"url": "x"}}, "doc_ref.url", "has the unknown key 'url'"),
        (
            {"relevance_grade": 1, "doc_ref": {"document_id": "d" * 1_000_000}},
            "doc_ref.document_id",
            "2,000 characters",
        ),
        ({"relevance_grade": 1, "doc_ref": "u", "section_refs": ["s" * 2_001]}, "section_refs[0]", "2000 characters"),
        ({"relevance_grade": 1, "doc_ref": " "}, "doc_ref", "its uri is blank"),
        ({"relevance_grade": 1, "doc_ref": 7}, "doc_ref", "not a number"),
        ({"relevance_grade": 2**70, "doc_ref": "x"}, "relevance_grade", "less than or equal to 32767."),
        ({"relevance_grade": True, "doc_ref": "x"}, "relevance_grade", "A valid integer is required."),
        ({"relevance_grade": None, "doc_ref": "x"}, "relevance_grade", "may not be null"),
        ({"relevance_grade": 1, "doc_ref": "x", "source": "robot"}, "source", '"robot" is not a valid choice.'),
    ],
)
def test_it_names_what_is_wrong_with_a_judgment(callers: Callers, body: Any, field: str, told: str) -> None:
    _, path = fruit(callers.owner)
    answer = callers.owner.post(f"{path_of(path)}/judgments", body)
    assert answer.status_code == 400, answer.content
    assert told in answer.json()["detail"]
    assert set(answer.json()["errors"]) == {field}


def test_many_judgments_are_stated_at_once_or_none(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    rows = [
        {"query_key": "red", "doc_ref": APPLE, "relevance_grade": None},
        {"query_key": "sour", "doc_ref": PEAR, "relevance_grade": 1},
    ]
    wrong = callers.owner.post(f"{path}/judgments/bulk", {"judgments": [*rows, rows[0] | {"query_key": "blue"}]})
    assert (wrong.status_code, set(wrong.json()["errors"])) == (400, {"judgments[2].query_key"})
    short = callers.owner.post(f"{path}/judgments/bulk", {"judgments": [rows[0], {"query_key": "red"}]})
    assert set(short.json()["errors"]) == {"judgments[1].doc_ref", "judgments[1].relevance_grade"}
    assert draft_of(dataset) is None
    for body in ({"judgments": []}, {"judgments": [rows[0]] * 5001}):
        assert callers.owner.post(f"{path}/judgments/bulk", body).status_code == 400
    done = callers.owner.post(f"{path}/judgments/bulk", {"judgments": rows}, idempotency_key="b")
    assert done.json() == {"version": 2, "added": 1, "changed": 0, "removed": 1, "unchanged": 0}
    assert [row["doc_ref"] for row in callers.owner.get(f"{path}/judgments").json()["judgments"]] == [PEAR]
    assert first_stands(dataset)


def test_what_is_nested_is_found_only_where_it_is(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    other = import_dataset(RECORD, name="another", owner=callers.owner.user).version.dataset
    red, sour = other.queries.order_by("id")
    judgment = red.judgments.get().pk
    for wrong in (
        f"{path}/queries/{red.pk}",
        f"{path}/queries/{red.pk}/judgments/{judgment}",
        f"/benchmark-datasets/{other.pk}/queries/{sour.pk}/judgments/{judgment}",
        f"{path}/queries/{10**30}",
        f"{path}/versions/{10**30}",
        f"{path}/queries/{'9' * 5000}",
    ):
        assert callers.owner.get(wrong).status_code == 404, wrong
        assert callers.owner.delete(wrong).status_code == 404, wrong


def test_lists_take_few_queries_whatever_their_size(
    callers: Callers, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    _, path = fruit(callers.owner)
    red = path_of(path)
    rows = [{"query_key": "red", "doc_ref": f"x:{number}", "relevance_grade": 1} for number in range(8)]
    callers.owner.post(f"{path}/judgments/bulk", {"judgments": rows})
    for list_path in (f"{path}/queries", f"{path}/judgments", f"{red}/judgments", f"{path}/versions"):
        with CaptureQueriesContext(connection) as few:
            callers.owner.get(list_path, per_page=1)
        with django_assert_max_num_queries(min(10, len(few))):
            callers.owner.get(list_path)


@pytest.mark.parametrize(
    ("name", "look", "change"),
    [
        ("anonymous", 401, [401] * 7),
        ("visitor", 403, [403] * 7),
        ("idle", 403, [403] * 7),
        ("other", 403, [403] * 7),
        ("reader", 200, [403] * 7),
        ("overseer", 200, [201, 200, 201, 200, 200, 204, 201]),
        ("owner", 200, [201, 200, 201, 200, 200, 204, 201]),
    ],
)
def test_each_may_do_what_is_theirs(callers: Callers, name: str, look: int, change: list[int]) -> None:
    _, path = fruit(callers.owner)
    caller, red, sour = getattr(callers, name), path_of(path), path_of(path, "sour")
    judgment = f"{red}/judgments/{Judgment.objects.get().pk}"
    row = {"query_key": "red", "doc_ref": "x:1", "relevance_grade": 1}
    looked = [f"{path}/queries", red, f"{red}/judgments", judgment, f"{path}/judgments", f"{path}/versions"]
    assert {caller.get(one).status_code for one in (*looked, f"{path}/versions/1")} == {look}
    answers = [
        caller.post(f"{path}/queries", {"query_key": "new", "query_text": "new"}),
        caller.ask("PATCH", sour, {"notes": "n"}),
        caller.post(f"{red}/judgments", {"doc_ref": PEAR, "relevance_grade": 1}),
        caller.ask("PUT", judgment, {"relevance_grade": 1}),
        caller.post(f"{path}/judgments/bulk", {"judgments": [row]}),
        caller.delete(red),
        caller.post(f"{path}/versions", {}),
    ]
    assert [answer.status_code for answer in answers] == change
