"""Mappings over HTTP: every field, every refusal."""

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from apps.mappings.creating import create_mapping
from apps.operations.models import Operation
from tests.api.addresses import UNKNOWN
from tests.api.bodies import JUDGED, mapped, owned_pair
from tests.api.callers import Callers, assert_refused, checked_json
from tests.drafts import set_judgment
from tests.factories import add_version, make_benchmark, make_collection, make_dataset


def test_post_creates_a_mapping_and_returns_its_fields(callers: Callers) -> None:
    mapping, path = mapped(callers.owner)
    facts = callers.owner.get(path).json()
    assert facts == {
        "created_at": facts["created_at"],
        "id": str(mapping.pk),
        "name": "mine on mine",
        "dataset_id": str(mapping.dataset_id),
        "dataset_version": None,
        "collection_id": str(mapping.collection_id),
        "mapping_status": "pending",
        "mapped_count": 0,
        "total_count": 0,
        "counts": {},
        "resolved_at": None,
    }
    assert mapping.owner == callers.owner.user


def test_list_contains_all_mappings_of_a_dataset_unpaged(
    callers: Callers, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """As the clients of the earlier API iterate it."""
    mapping, path = mapped(callers.owner)
    listed = f"/benchmark-datasets/{mapping.dataset_id}/mappings"
    assert callers.owner.get(listed).json() == [callers.owner.get(path).json()]
    with CaptureQueriesContext(connection) as few:
        callers.owner.get(listed)
    for number in range(60):
        create_mapping(mapping.dataset, make_collection(f"c{number}"), owner=callers.owner.user)
    with django_assert_num_queries(len(few)):
        rows = callers.owner.get(listed).json()
    assert (len(rows), rows[0]["name"], rows[-1]["id"]) == (61, "mine on c59", str(mapping.pk))
    assert_refused(callers.owner.get(listed, page=2), 400, message="No key is allowed here: leave out 'page'.")


def test_a_second_mapping_of_the_two_is_a_conflict(callers: Callers) -> None:
    mapping, _ = mapped(callers.owner)
    path = f"/benchmark-datasets/{mapping.dataset_id}/mappings"
    body = {"collection_id": str(mapping.collection_id), "name": "another"}
    assert_refused(callers.owner.post(path, body), 409, "mapping_exists", 'already mapped to the collection "mine"')
    body["collection_id"] = str(make_collection("next").pk)
    assert_refused(callers.owner.post(path, body | {"name": "mine on mine"}), 409, field="name")


def test_default_name_never_causes_a_conflict(callers: Callers) -> None:
    """Of two datasets of one name, one the caller's and one shared."""
    mapping, _ = mapped(callers.owner)
    shared = make_dataset(JUDGED, name="mine")
    body = {"collection_id": str(mapping.collection_id)}
    answer = callers.owner.post(f"/benchmark-datasets/{shared.pk}/mappings", body)
    assert (answer.status_code, answer.json()["name"]) == (201, "mine on mine (2)")


def test_unknown_or_foreign_collection_is_refused(callers: Callers) -> None:
    dataset, _ = owned_pair(callers.owner)
    _, theirs = owned_pair(callers.other, name="theirs")
    path = f"/benchmark-datasets/{dataset.pk}/mappings"
    nowhere = callers.owner.post(path, {"collection_id": str(UNKNOWN)})
    assert_refused(nowhere, 404, message=f"The collection {UNKNOWN} does not exist.")
    assert callers.owner.post(path, {"collection_id": str(theirs.pk)}).status_code == 403


def test_small_mapping_resolves_immediately_and_lists_unresolved_judgments(callers: Callers) -> None:
    _, path = mapped(callers.owner)
    answer = callers.owner.post(f"{path}/resolve", idempotency_key="r")
    facts = checked_json(answer, 200)
    assert (facts["mapping_status"], facts["mapped_count"], facts["total_count"]) == ("partial", 1, 3)
    assert facts["counts"] == {"resolved": 1, "ambiguous": 1, "not_found": 1, "invalid_ref": 0, "conflicts": 0}
    assert (facts["dataset_version"], facts["operation_uuid"]) == (1, None)
    assert facts["resolved_at"].endswith("Z")
    twofold, deleted = facts["unresolved"]
    assert {key: twofold[key] for key in ("query_key", "query_text", "relevance_grade", "doc_ref", "outcome")} == {
        "query_key": "q1",
        "query_text": "What is q1?",
        "relevance_grade": 2,
        "doc_ref": {"file_name": "README.md"},
        "outcome": "ambiguous",
    }
    assert twofold["reason"] == "2 documents have the file_name 'README.md'."
    assert [document["title"] for document in twofold["candidates"]] == ["Second", "Third"]
    assert (deleted["key"], deleted["outcome"], deleted["candidates"]) == ("uri", "not_found", [])
    facts.pop("operation_uuid"), facts.pop("unresolved")
    assert callers.owner.get(path).json() == facts
    again = callers.owner.post(f"{path}/resolve", idempotency_key="r")
    assert (again.content, "Idempotent-Replayed" in again.headers) == (answer.content, True)


def test_large_mapping_is_resolved_by_the_queue(callers: Callers, settings: Any) -> None:
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 2
    _, path = mapped(callers.owner)
    facts = checked_json(callers.owner.post(f"{path}/resolve"), 202)
    operation = Operation.objects.get()
    assert (facts["operation_uuid"], facts["mapping_status"]) == (str(operation.pk), "pending")
    assert (facts["unresolved"], operation.started_by) == ([], callers.owner.user)
    assert_refused(callers.owner.post(f"{path}/resolve"), 409, "operation_active")
    assert callers.owner.delete(path).status_code == 409


def test_a_dataset_without_a_frozen_version_cannot_be_resolved(callers: Callers) -> None:
    mapping, path = mapped(callers.owner)
    mapping.dataset.versions.update(frozen_at=None)
    assert_refused(callers.owner.post(f"{path}/resolve"), 409, message="freeze its draft")


def test_unresolved_pages_cover_the_resolved_version(callers: Callers) -> None:
    mapping, path = mapped(callers.owner)
    assert callers.owner.get(f"{path}/unresolved").json()["unresolved"] == []
    samples = callers.owner.post(f"{path}/resolve").json()["unresolved"]
    page = callers.owner.get(f"{path}/unresolved").json()
    assert page == {"unresolved": samples, "total": 2, "page": 1, "per_page": 50}
    second = callers.owner.get(f"{path}/unresolved", page=2, per_page=1).json()
    assert (second["unresolved"], second["total"]) == (samples[1:], 2)
    assert callers.owner.get(f"{path}/unresolved", outcome="ambiguous").json()["unresolved"] == samples[:1]
    assert_refused(callers.owner.get(f"{path}/unresolved", outcome="resolved"), 400, field="outcome")
    mapping.dataset.queries.filter(key="q2").update(until=2)
    add_version(mapping.dataset)
    callers.owner.post(f"{path}/resolve")
    assert callers.owner.get(f"{path}/unresolved").json()["total"] == 1, "version 2 has q2 no more"


def test_it_checks_a_draft_before_that_is_frozen(callers: Callers, settings: Any) -> None:
    mapping, path = mapped(callers.owner)
    set_judgment(mapping.dataset, "q2", {"document_id": "z"}, 1)
    set_judgment(mapping.dataset, "q2", {"document_id": "a"}, 1, section_refs=["s9"])
    answer = callers.owner.post(f"{path}/check", {}).json()
    assert (answer["version"], answer["checked"], answer["dangling_count"]) == (2, 5, 4)
    assert answer["dangling"][2:] == [
        {"query_key": "q2", "reason": "No document has the document_id 'z'."},
        {"query_key": "q2", "reason": "The document 'a' has no section 's9'."},
    ]
    assert callers.owner.post(f"{path}/check", {"version": 1}).json()["dangling_count"] == 2
    assert callers.owner.post(f"{path}/check", {"version": 9}).status_code == 400
    assert callers.owner.post(f"{path}/check", {"version": 2**70}).status_code == 400
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 4
    assert callers.owner.post(f"{path}/check", {}).status_code == 409
    assert not mapping.resolutions.exists()


def test_only_unused_mappings_can_be_deleted(callers: Callers) -> None:
    mapping, path = mapped(callers.owner)
    callers.owner.post(f"{path}/resolve")
    mapping.refresh_from_db()
    benchmark = make_benchmark(mapping)
    assert_refused(callers.owner.delete(path), 409, message="is used by the benchmark")
    benchmark.delete()
    assert callers.owner.delete(path).status_code == 204
    assert callers.owner.get(path).status_code == 404
