"""Drafts and versions over HTTP: what a draft changes, and freezing it."""

from tests.api.callers import Callers
from tests.api.test_queries import APPLE, JUDGMENT_FIELDS, PEAR, first_stands, fruit, path_of


def test_the_difference_of_a_draft_is_shown_and_just_that_is_frozen(callers: Callers) -> None:
    _, path = fruit(callers.owner)
    callers.owner.post(
        f"{path}/judgments/bulk", {"judgments": [{"query_key": "red", "doc_ref": APPLE, "relevance_grade": 1}]}
    )
    callers.owner.post(f"{path_of(path)}/judgments", {"doc_ref": PEAR, "relevance_grade": 2})
    callers.owner.patch(path_of(path, "sour"), {"query_text": "sour fruits"})
    told = callers.owner.get(f"{path}/versions/2/difference").json()
    assert (told["number"], told["since"]) == (2, 1)
    assert told["sentence"] == "3 changes: 1 judgment added, 1 judgment changed, 1 query changed"
    (added,), (changed,), (worded,) = (
        told[kind] for kind in ("judgments_added", "judgments_changed", "queries_changed")
    )
    assert (added["doc_ref"], added["relevance_grade"], set(added)) == (PEAR, 2, JUDGMENT_FIELDS)
    assert (changed["doc_ref"], changed["grade_before"], changed["relevance_grade"]) == (APPLE, 3, 1)
    assert (worded["text_before"], worded["query_text"]) == ("sour fruit", "sour fruits")
    assert {kind: total for kind, total in told["totals"].items() if total} == {
        **{"judgments_added": 1, "judgments_changed": 1, "queries_changed": 1}
    }
    callers.owner.delete(path_of(path, "sour"))
    late = callers.owner.post(f"{path}/versions", {"seen": told["seen"]})
    assert (late.status_code, "edited since you looked at it" in late.json()["detail"]) == (409, True)
    again = callers.owner.get(f"{path}/versions/2/difference", limit=1).json()
    assert [query["query_key"] for query in again["queries_removed"]] == ["sour"]
    assert callers.owner.post(f"{path}/versions", {"seen": again["seen"]}).status_code == 201
    assert callers.owner.get(f"{path}/versions/2/difference").json()["queries_removed"] == again["queries_removed"]
    assert callers.owner.get(f"{path}/versions/2/difference", limit=0).status_code == 400
    assert callers.other.get(f"{path}/versions/2/difference").status_code == 403


def test_a_draft_is_frozen_with_a_note_and_never_changes_again(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    nothing = callers.owner.post(f"{path}/versions", {})
    assert (nothing.status_code, "has no draft to freeze" in nothing.json()["detail"]) == (409, True)
    callers.owner.post(f"{path_of(path)}/judgments", {"doc_ref": PEAR, "relevance_grade": 1})
    draft, first = callers.owner.get(f"{path}/versions").json()["versions"]
    assert (draft["number"], draft["is_draft"], draft["judgment_count"], draft["frozen_at"]) == (2, True, 2, None)
    assert (first["number"], first["is_draft"], first["query_count"]) == (1, False, 2)
    changes = callers.owner.get(f"{path}/versions/2").json()["changes"]
    assert changes == {"added": 1, "changed": 0, "removed": 0, "queries": 0, "sentence": "1 change: 1 judgment added"}
    frozen = callers.owner.post(f"{path}/versions", {"label": "late", "note": "Judged in May."})
    assert frozen.status_code == 201, frozen.content
    facts = callers.owner.get(f"{path}/versions/2").json()
    assert facts == frozen.json() | {"changes": None}
    assert (facts["label"], facts["note"], facts["is_draft"]) == ("late", "Judged in May.", False)
    refused = callers.owner.delete(f"{path}/versions/2")
    assert (refused.status_code, "fruit v2 is frozen" in refused.json()["detail"]) == (409, True)
    callers.owner.delete(path_of(path, "sour"))
    taken = callers.owner.post(f"{path}/versions", {"label": "late"})
    assert (taken.status_code, set(taken.json()["errors"])) == (409, {"label"})
    assert callers.owner.delete(f"{path}/versions/3").status_code == 204
    assert callers.owner.get(f"{path}/versions/3").status_code == 404
    assert callers.owner.get(f"{path}/queries").json()["total"] == 2
    assert first_stands(dataset)
