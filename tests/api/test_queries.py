"""Queries, judgments, drafts and versions over HTTP: every field, every refusal."""

from typing import Any

import pytest

from apps.datasets.editing.drafts import find_draft
from apps.datasets.models import Dataset, Judgment
from apps.datasets.versions import hash_version
from tests.api.bodies import APPLE, PEAR, fruit, path_of
from tests.api.callers import Callers, assert_refused, checked_json


def first_stands(dataset: Dataset) -> bool:
    first = dataset.versions.get(number=1)
    return hash_version(first) == first.content_hash


def test_queries_are_listed_for_the_newest_and_any_version(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    page = callers.owner.get(f"{path}/queries").json()
    assert (page["total"], [query["query_key"] for query in page["queries"]]) == (2, ["red", "sour"])
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
    facts = checked_json(added, 201)
    assert {key: facts[key] for key in (*body, "since", "until")} == body | {"since": 2, "until": None}
    assert callers.owner.post(f"{path}/queries", body, idempotency_key="k").content == added.content
    assert_refused(callers.owner.post(f"{path}/queries", body), 409, "query_exists", field="query_key")
    old = path_of(path)
    changed = callers.owner.ask("PATCH", old, {"query_text": "crimson fruit", "category": ""}).json()
    assert (changed["query_text"], changed["category"], changed["since"]) == ("crimson fruit", "", 2)
    assert f"{path}/queries/{changed['id']}" == path_of(path) != old
    assert callers.owner.get(old).json()["until"] == 2
    for method, sent in (("PATCH", {"notes": "x"}), ("DELETE", None)):
        assert_refused(callers.owner.ask(method, old, sent), 409, "outdated", f"the one of the id {changed['id']}")
    assert callers.owner.delete(path_of(path)).status_code == 204
    assert first_stands(dataset)


def test_invalid_query_is_rejected_at_its_field(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    body = {"query_key": "k", "query_text": "t", "slices": [1]}
    assert_refused(callers.owner.post(f"{path}/queries", body), 400, message="Not a valid string.", field="slices[0]")
    assert find_draft(dataset) is None


def test_weight_of_a_query_is_a_positive_number(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    assert checked_json(callers.owner.ask("PATCH", path_of(path), {"weight": 12}), 200)["weight"] == 12
    for wrong in (0, -1, "12", True, 1e13, None):
        assert_refused(callers.owner.ask("PATCH", path_of(path), {"weight": wrong}), 400, field="weight")


def test_post_adds_a_judgment_and_returns_its_fields(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    query = path_of(path)
    body = {"doc_ref": "file:///pear.md", "relevance_grade": 1, "section_refs": ["s1"], "note": "late"}
    facts = checked_json(callers.owner.post(f"{query}/judgments", body), 201)
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
    assert_refused(callers.owner.ask("PUT", old, {"relevance_grade": 2}), 409, "outdated")
    new = f"{query}/judgments/{changed.json()['id']}"
    assert callers.owner.ask("PUT", new, {"relevance_grade": 2}).json()["id"] == changed.json()["id"]
    assert callers.owner.delete(new).status_code == 204
    assert callers.owner.delete(old).status_code == 409
    assert callers.owner.get(old).json()["until"] == 2
    assert first_stands(dataset)


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"relevance_grade": 1, "doc_ref": {"url": "x"}}, "doc_ref.url", "has the unknown key 'url'"),
        ({"relevance_grade": 1, "doc_ref": {"document_id": "d" * 10**6}}, "doc_ref.document_id", "2,000 characters"),
        ({"relevance_grade": 1, "doc_ref": "u", "section_refs": ["s" * 2_001]}, "section_refs[0]", "2000 characters"),
        ({"relevance_grade": 1, "doc_ref": " "}, "doc_ref", "its uri is blank"),
        ({"relevance_grade": 1, "doc_ref": 7}, "doc_ref", "not a number"),
    ],
)
def test_invalid_judgment_is_rejected_at_its_field(callers: Callers, body: Any, field: str, message: str) -> None:
    _, path = fruit(callers.owner)
    assert_refused(callers.owner.post(f"{path_of(path)}/judgments", body), 400, message=message, field=field)


def test_many_judgments_are_stated_at_once_or_none(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    rows = [
        {"query_key": "red", "doc_ref": APPLE, "relevance_grade": None},
        {"query_key": "sour", "doc_ref": PEAR, "relevance_grade": 1},
    ]
    wrong = callers.owner.post(f"{path}/judgments/bulk", {"judgments": [*rows, rows[0] | {"query_key": "blue"}]})
    assert_refused(wrong, 400, field="judgments[2].query_key")
    short = callers.owner.post(f"{path}/judgments/bulk", {"judgments": [rows[0], {"query_key": "red"}]})
    assert set(short.json()["errors"]) == {"judgments[1].doc_ref", "judgments[1].relevance_grade"}
    assert find_draft(dataset) is None
    for body in ({"judgments": []}, {"judgments": [rows[0]] * 5001}):
        assert callers.owner.post(f"{path}/judgments/bulk", body).status_code == 400
    answer = callers.owner.post(f"{path}/judgments/bulk", {"judgments": rows}, idempotency_key="b")
    assert answer.json() == {"version": 2, "added": 1, "changed": 0, "removed": 1, "unchanged": 0}
    assert [row["doc_ref"] for row in callers.owner.get(f"{path}/judgments").json()["judgments"]] == [PEAR]
    assert first_stands(dataset)


@pytest.mark.parametrize("tail", [f"queries/{10**30}", f"versions/{10**30}", f"queries/{'9' * 5000}"])
def test_a_number_that_is_too_large_is_not_found(callers: Callers, tail: str) -> None:
    _, path = fruit(callers.owner)
    assert [callers.owner.ask(method, f"{path}/{tail}").status_code for method in ("GET", "DELETE")] == [404, 404]


def test_freezing_applies_exactly_the_displayed_draft_difference(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    callers.owner.post(
        f"{path}/judgments/bulk", {"judgments": [{"query_key": "red", "doc_ref": APPLE, "relevance_grade": 1}]}
    )
    callers.owner.post(f"{path_of(path)}/judgments", {"doc_ref": PEAR, "relevance_grade": 2})
    callers.owner.patch(path_of(path, "sour"), {"query_text": "sour fruits"})
    answer = callers.owner.get(f"{path}/versions/2/difference").json()
    assert (answer["number"], answer["since"]) == (2, 1)
    assert answer["sentence"] == "3 changes: 1 judgment added, 1 judgment changed, 1 query changed"
    (added,), (changed,), (worded,) = (
        answer[kind] for kind in ("judgments_added", "judgments_changed", "queries_changed")
    )
    assert (added["doc_ref"], added["relevance_grade"]) == (PEAR, 2)
    assert (changed["doc_ref"], changed["grade_before"], changed["relevance_grade"]) == (APPLE, 3, 1)
    assert (worded["text_before"], worded["query_text"]) == ("sour fruit", "sour fruits")
    assert {kind: total for kind, total in answer["totals"].items() if total} == {
        **{"judgments_added": 1, "judgments_changed": 1, "queries_changed": 1}
    }
    callers.owner.delete(path_of(path, "sour"))
    late = callers.owner.post(f"{path}/versions", {"digest": answer["digest"]})
    assert_refused(late, 409, message="edited after you viewed it")
    again = callers.owner.get(f"{path}/versions/2/difference", limit=1).json()
    assert [query["query_key"] for query in again["queries_removed"]] == ["sour"]
    assert callers.owner.post(f"{path}/versions", {"digest": again["digest"]}).status_code == 201
    assert callers.owner.get(f"{path}/versions/2/difference").json()["queries_removed"] == again["queries_removed"]
    assert callers.owner.get(f"{path}/versions/2/difference", limit=0).status_code == 400


def test_draft_is_frozen_with_a_note_and_becomes_immutable(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    assert_refused(callers.owner.post(f"{path}/versions", {}), 409, message="has no draft to freeze")
    callers.owner.post(f"{path_of(path)}/judgments", {"doc_ref": PEAR, "relevance_grade": 1})
    draft, first = callers.owner.get(f"{path}/versions").json()["versions"]
    assert (draft["number"], draft["is_draft"], draft["judgment_count"], draft["frozen_at"]) == (2, True, 2, None)
    assert (first["number"], first["is_draft"], first["query_count"]) == (1, False, 2)
    changes = callers.owner.get(f"{path}/versions/2").json()["changes"]
    assert changes == {"added": 1, "changed": 0, "removed": 0, "queries": 0, "sentence": "1 change: 1 judgment added"}
    frozen = checked_json(callers.owner.post(f"{path}/versions", {"label": "late", "note": "Judged in May."}), 201)
    facts = callers.owner.get(f"{path}/versions/2").json()
    assert facts == frozen | {"changes": None}
    assert (facts["label"], facts["note"], facts["is_draft"]) == ("late", "Judged in May.", False)
    assert_refused(callers.owner.delete(f"{path}/versions/2"), 409, message="fruit v2 is frozen")
    callers.owner.delete(path_of(path, "sour"))
    assert_refused(callers.owner.post(f"{path}/versions", {"label": "late"}), 409, field="label")
    assert callers.owner.delete(f"{path}/versions/3").status_code == 204
    assert callers.owner.get(f"{path}/versions/3").status_code == 404
    assert callers.owner.get(f"{path}/queries").json()["total"] == 2
    assert first_stands(dataset)


def test_content_hash_is_sha256(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    body = {"doc_ref": {"content_hash": "xyz"}, "relevance_grade": 1}
    assert_refused(callers.owner.post(f"{path_of(path)}/judgments", body), 400, message="64 hexadecimal digits")
    assert (
        callers.owner.post(f"{path_of(path)}/judgments", body | {"doc_ref": {"content_hash": "aA" * 32}}).status_code
        == 201
    )
