"""Resolving a mapping on the database: what is stored, counted and replaced, at once or by the queue."""

import threading

import pytest
from django.db import connection
from django.utils import timezone

from apps.collections.models import Collection
from apps.mappings import resolving
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.resolving import is_stale, resolve, resolve_now
from apps.operations.handlers import find_handler
from apps.operations.launching import OperationActiveError, cancel_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.factories import add_judgment, add_version, make_collection, make_dataset

pytestmark = pytest.mark.django_db

LIBRARY = [
    {"external_id": "a", "uri": "file:///a.md", "file_name": "a.md", "content_hash": "aa" * 32},
    {"external_id": "b", "uri": "file:///b.md", "file_name": "README.md", "content_hash": "bb" * 32},
    {"external_id": "c", "uri": "file:///c/b.md", "file_name": "README.md", "content_hash": "bb" * 32},
    {"external_id": "gone", "uri": "file:///gone.md", "removed_at": timezone.now()},
]
EVERY_OUTCOME = {
    "q1": [
        ({"document_id": "a"}, 2),
        ({"uri": "file:///b.md"}, 1),
        ({"content_hash": "AA" * 32, "file_name": "README.md"}, 2),
        ({"path": "file:///c/b.md"}, 1),
    ],
    "q2": [
        ({"file_name": "README.md"}, 1),
        ({"content_hash": "bb" * 32}, 1),
        ({"document_id": "gone"}, 1),
        ({"uri": " "}, 0),
    ],
}


@pytest.fixture
def queue_everything(settings):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0


def make_mapping(queries=EVERY_OUTCOME, documents=LIBRARY) -> Mapping:
    return create_mapping(make_dataset(queries), make_collection(documents=documents))


def stored(mapping: Mapping) -> list[tuple]:
    """(query, document, outcome, key, reason) of every resolution, in the order of the judgments."""
    fields = ("judgment__query__key", "document__external_id", "outcome", "key", "reason")
    return list(mapping.resolutions.order_by("judgment").values_list(*fields))


ALL_STORED = [
    ("q1", "a", "resolved", "document_id", ""),
    ("q1", "b", "resolved", "uri", ""),
    ("q1", "a", "resolved", "content_hash", ""),
    ("q1", "c", "resolved", "path", ""),
    ("q2", None, "ambiguous", "file_name", "2 documents have the file_name 'README.md'."),
    ("q2", None, "ambiguous", "content_hash", f"2 documents have the content_hash '{'bb' * 32}'."),
    ("q2", None, "not_found", "document_id", "No document has the document_id 'gone'."),
    ("q2", None, "invalid_ref", "uri", "The uri must not be blank."),
]


def test_it_gives_each_judgment_a_document_or_a_reason():
    mapping = resolve(make_mapping()).mapping
    assert stored(mapping) == ALL_STORED
    assert mapping.counts == {"resolved": 4, "ambiguous": 2, "not_found": 1, "invalid_ref": 1, "conflicts": 0}
    assert (mapping.mapped_count, mapping.total_count, mapping.status) == (4, 8, "partial")
    assert mapping.dataset_version == mapping.dataset.versions.get()
    assert mapping.collection_fingerprint == mapping.collection.fingerprint
    assert mapping.resolved_at is not None
    mapping.refresh_from_db()
    assert mapping.status == "partial"


def test_it_looks_only_into_its_own_collection():
    elsewhere = make_collection("elsewhere", LIBRARY)
    mapping = create_mapping(make_dataset({"q1": [({"document_id": "a"}, 1)]}), make_collection(documents=LIBRARY))
    resolve(mapping)
    assert mapping.resolutions.get().document.collection != elsewhere


def test_it_finds_a_document_by_its_public_id():
    collection = make_collection(documents=LIBRARY)
    public = str(collection.documents.get(external_id="b").uuid)
    mapping = create_mapping(make_dataset({"q1": [({"document_id": public}, 1)]}), collection)
    assert resolve(mapping).mapping.status == "resolved"
    assert stored(mapping)[0][1] == "b"


def test_all_of_none_is_resolved():
    mapping = make_mapping({"q1": []})
    assert mapping.status == "pending"
    mapping = resolve(mapping).mapping
    assert (mapping.mapped_count, mapping.total_count, mapping.status) == (0, 0, "resolved")


def test_it_counts_different_grades_for_one_document_as_conflicts():
    grades = [({"document_id": "a"}, 2), ({"uri": "file:///a.md"}, 1), ({"document_id": "b"}, 1)]
    agreeing = [({"document_id": "a"}, 1), ({"uri": "file:///a.md"}, 1)]
    assert resolve(make_mapping({"q1": grades, "q2": agreeing})).mapping.counts["conflicts"] == 1


def test_it_resolves_again_from_nothing():
    mapping = resolve(make_mapping()).mapping
    collection = mapping.collection
    collection.documents.filter(external_id="gone").update(removed_at=None)
    collection.documents.filter(external_id="c").update(removed_at=timezone.now())
    mapping = resolve(mapping).mapping
    assert mapping.counts == {"resolved": 6, "ambiguous": 0, "not_found": 1, "invalid_ref": 1, "conflicts": 0}
    assert mapping.resolutions.count() == 8


def test_it_resolves_older_versions_and_counts_the_latest():
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1), ({"document_id": "missing"}, 1)]})
    query = dataset.versions.get().queries.get()
    query.judgments.filter(doc_ref={"document_id": "missing"}).update(until=2)
    add_judgment(query, {"document_id": "b"}, 1, since=2)
    add_version(dataset)
    add_judgment(query, {"document_id": "c"}, 1, since=3)
    add_version(dataset, frozen=False)
    mapping = resolve(create_mapping(dataset, make_collection(documents=LIBRARY))).mapping
    assert [(row[1], row[2]) for row in stored(mapping)] == [("a", "resolved"), (None, "not_found"), ("b", "resolved")]
    assert (mapping.dataset_version.number, mapping.total_count, mapping.status) == (2, 2, "resolved")


def test_mapping_is_stale_after_dataset_or_collection_changes():
    mapping = make_mapping()
    assert not is_stale(mapping)  # pending: there is nothing that could be out of date
    mapping = resolve(mapping).mapping
    assert not is_stale(mapping)
    Collection.objects.filter(pk=mapping.collection_id).update(fingerprint="f" * 64)
    assert is_stale(mapping)
    mapping = resolve(mapping).mapping
    assert not is_stale(mapping)
    add_version(mapping.dataset, frozen=False)
    assert not is_stale(mapping)
    mapping.dataset.versions.update(frozen_at=timezone.now())
    assert is_stale(mapping)


def test_database_query_count_is_independent_of_collection_size(django_assert_max_num_queries):
    documents = [{"external_id": f"d{n}"} for n in range(300)]
    mapping = make_mapping({"q1": [({"document_id": f"d{n}"}, 1) for n in range(100)]}, documents)
    with django_assert_max_num_queries(25):
        assert resolve(mapping).mapping.mapped_count == 100


def test_chunks_leave_no_seam(monkeypatch):
    monkeypatch.setattr(resolving, "CHUNK", 3)
    assert stored(resolve(make_mapping()).mapping) == ALL_STORED


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_REFS", 7), ("MAX_DOCS", 2), ("MAX_WALL_MS", 0)], ids=["references", "documents", "time"]
)
def test_mappings_over_a_limit_are_queued(settings, limit, value):
    mapping = resolve(make_mapping()).mapping
    setattr(settings, f"BENCHMARK_MAPPING_RESOLVE_SYNC_{limit}", value)
    mapping.collection.documents.update(removed_at=None)
    resolved = resolve(mapping)
    assert resolved.operation.kind == "resolve"
    assert resolved.operation.queue == "default"
    assert stored(mapping) == ALL_STORED  # as before: the attempt that was given up left no trace
    assert resolved.mapping.resolved_at == mapping.resolved_at


@pytest.mark.django_db(transaction=True)
def test_the_queue_resolves_as_a_request_does(queue_everything):
    resolved = resolve(make_mapping())
    assert resolved.mapping.status == "pending"
    seen = []
    operation = wait(resolved.operation, on_progress=seen.append)
    mapping = Mapping.objects.get()
    assert stored(mapping) == ALL_STORED
    assert (mapping.mapped_count, mapping.total_count, mapping.status) == (4, 8, "partial")
    assert find_handler(operation).build_event(operation) == (
        "benchmark_mapping_resolution_progress",
        {
            "operation_id": str(operation.pk),
            "mapping_id": str(mapping.pk),
            "dataset_id": str(mapping.dataset_id),
            "collection_id": str(mapping.collection_id),
            "status": "completed",
            "error": None,
            "queue_position": None,
            "waiting_for": None,
            "stage": "completed",
            "total_refs": 8,
            "processed_refs": 8,
            "resolved_refs": 4,
            "ambiguous_refs": 2,
            "unresolved_refs": 2,
        },
    )
    assert seen[0]["stage"] == "starting"
    assert seen[-1]["stage"] == "completed"


@pytest.mark.django_db(transaction=True)
def test_only_one_operation_resolves_a_mapping(queue_everything):
    resolved = resolve(make_mapping())
    with pytest.raises(OperationActiveError, match="already being resolved"):
        resolve(resolved.mapping)
    cancel_operation(resolved.operation)
    resolve(resolved.mapping)


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_operation_leaves_the_mapping_as_it_was(queue_everything):
    mapping = resolve_now(make_mapping())
    operation = resolve(mapping).operation
    cancel_operation(operation)
    operation.refresh_from_db()
    event = find_handler(operation).build_event(operation)[1]
    assert (event["status"], event["stage"]) == ("cancelled", "failed")
    mapping.refresh_from_db()
    assert mapping.status == "partial"
    assert stored(mapping) == ALL_STORED


@pytest.mark.django_db(transaction=True)
def test_a_failed_operation_says_why(queue_everything):
    mapping = make_mapping()
    operation = resolve(mapping).operation
    mapping.dataset.versions.update(frozen_at=None)
    with pytest.raises(Exception, match="freeze its draft"):
        wait(operation)
    event = find_handler(operation).build_event(Operation.objects.get())[1]
    assert (event["stage"], "freeze its draft" in event["error"]) == ("failed", True)


@pytest.mark.django_db(transaction=True)
def test_concurrent_resolutions_wait_for_each_other():
    mapping = make_mapping()
    failures = []

    def work():
        try:
            resolve_now(mapping)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert stored(mapping) == ALL_STORED
