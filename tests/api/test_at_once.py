"""Requests at the same time, on connections of their own."""

from collections import Counter
from typing import Any

import pytest
from django.core.cache import cache

from apps.api.models import StoredAnswer
from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset
from apps.datasets.versions import hash_version
from apps.operations.models import Operation
from apps.retrieval.indexing import create_index
from apps.retrieval.models import Index
from tests.api.bodies import CORPUS, DATASETS, PEAR, fruit, owned_collection, path_of, post_benchmark, questions, record
from tests.api.callers import Caller, Callers
from tests.at_once import at_once
from tests.factories import make_dataset, make_mapping
from tests.library import make_library

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_key_at_once_is_done_once(callers: Callers) -> None:
    callers.owner.get(DATASETS)
    clients = [Caller(callers.owner.user) for _ in range(5)]
    answers = at_once(5, lambda order: clients[order].upload(DATASETS, questions("a"), name="n", idempotency_key="k"))
    assert {answer.status_code for answer in answers} == {201}
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 4
    assert len({answer.content for answer in answers}) == 1
    assert (Dataset.objects.count(), StoredAnswer.objects.count()) == (1, 1)


def test_server_failure_before_the_response_rolls_back(callers: Callers, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = callers.owner
    owner.client.raise_request_exception = False
    with monkeypatch.context() as stopped:
        stopped.setattr("apps.api.idempotency.JSONRenderer", None)
        assert owner.upload(DATASETS, questions("a"), name="n", idempotency_key="k").status_code == 500
    assert not Dataset.objects.exists()
    again = owner.upload(DATASETS, questions("a"), name="n", idempotency_key="k")
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (201, None)


def test_requests_at_once_are_all_counted(callers: Callers, settings: Any, open_window: None) -> None:
    settings.BENCHBENCH_API_RATES = settings.BENCHBENCH_API_RATES | {"read": (4, 3600)}
    clients = [Caller(callers.owner.user) for _ in range(8)]
    cache.clear()
    statuses = at_once(8, lambda order: clients[order].get(DATASETS).status_code)
    assert sorted(statuses) == [200] * 4 + [429] * 4


@pytest.mark.parametrize("keyed", [False, True])
def test_starts_at_once_do_not_pass_the_quota(callers: Callers, settings: Any, keyed: bool) -> None:
    settings.BENCHMARK_MAX_RUNNING_PER_USER = 2
    mapping = make_library(documents=6, queries=2)
    rows = [post_benchmark(callers.owner, mapping, name=str(number)) for number in range(6)]
    clients = [Caller(callers.owner.user) for _ in rows]

    def start(order: int) -> tuple[int, str]:
        headers = {"idempotency_key": "k"} if keyed else {}
        answer = clients[order].post(f"/benchmarks/{rows[order].pk}/start", **headers)
        return answer.status_code, answer.json().get("code", "")

    assert sorted(at_once(6, start)) == [(200, "")] * 2 + [(409, "quota")] * 4
    assert Operation.objects.filter(kind="benchmark").count() == 2


def test_builds_and_resolutions_at_once_do_not_pass_theirs(callers: Callers, settings: Any) -> None:
    settings.BENCHMARK_MAX_INDEXING_PER_USER = settings.BENCHMARK_MAX_RESOLVING_PER_USER = 1
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = 0
    owner, collection = callers.owner, owned_collection(callers.owner, "fruit", [{"text": "apple"}])
    paths = {"index": [], "resolve": []}
    for name in ("a", "b"):
        index = create_index(collection, name=name, owner=owner.user)
        dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]}, name=name, owner=owner.user)
        mapping = make_mapping(dataset, collection, name=name, owner=owner.user)
        paths["index"].append(f"/indexes/{index.pk}/build")
        paths["resolve"].append(f"/benchmark-datasets/{dataset.pk}/mappings/{mapping.pk}/resolve")
    clients = [Caller(owner.user) for _ in "ab"]
    for kind, (one, two) in paths.items():
        answers = at_once(2, lambda order: clients[order].post((one, two)[order]))  # noqa: B023 (called at once)
        assert sorted((answer.status_code, answer.json().get("code", "")) for answer in answers) == [
            (202, ""),
            (409, "quota"),
        ]
        assert Operation.objects.filter(kind=kind, started_by=owner.user).count() == 1


def test_edits_at_once_gather_in_one_draft(callers: Callers) -> None:
    dataset, path = fruit(callers.owner)
    red = path_of(path)
    clients = [Caller(callers.owner.user) for _ in range(12)]

    def edit(order: int) -> tuple[int, int]:
        kind, number = order % 4, order // 4
        if kind == 0:
            body = {"query_key": "one for all", "query_text": f"wording {number}"}
            return kind, clients[order].post(f"{path}/queries", body).status_code
        if kind == 1:
            body = {"query_key": f"new {number}", "query_text": "new"}
            return kind, clients[order].post(f"{path}/queries", body).status_code
        if kind == 2:
            row = {"query_key": "sour", "doc_ref": f"x:{number}", "relevance_grade": 1}
            return kind, clients[order].post(f"{path}/judgments/bulk", {"judgments": [row]}).status_code
        return kind, clients[order].post(f"{red}/judgments", {"doc_ref": PEAR, "relevance_grade": number}).status_code

    answers = at_once(12, edit)
    assert sorted(status for kind, status in answers if kind == 0) == [201, 409, 409]
    assert [status for kind, status in answers if kind in (1, 2)].count(201) == 3
    assert {status for kind, status in answers if kind == 2} == {200}
    assert {status for kind, status in answers if kind == 3} <= {200, 201}
    frozen = callers.owner.post(f"{path}/versions", {}).json()
    assert (frozen["number"], frozen["query_count"], frozen["judgment_count"]) == (2, 6, 5)
    assert all(hash_version(version) == version.content_hash for version in dataset.versions.all())


@pytest.fixture
def clients(callers: Callers) -> list[Caller]:
    return [Caller(callers.owner.user) for _ in range(8)]


def test_concurrent_uploads_of_one_name_create_one_collection(clients: list[Caller]) -> None:
    answers = at_once(8, lambda order: clients[order].upload("/collections", CORPUS, file_name="c.jsonl", name="n"))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 7}
    assert Collection.objects.get().document_count == Document.objects.count() == 2


def test_no_document_is_lost(callers: Callers, clients: list[Caller]) -> None:
    collection = owned_collection(callers.owner)
    path = f"/collections/{collection.pk}/documents"

    def fill(order: int) -> int:
        documents = [record("shared", str(order)), *(record(f"{order}-{number}") for number in range(20))]
        status: int = clients[order].post(path, {"documents": documents}).status_code
        return status

    assert set(at_once(8, fill)) == {200}
    collection.refresh_from_db()
    assert collection.document_count == Document.objects.count() == 8 * 20 + 1


def test_collection_deleted_during_import_is_gone_or_complete(callers: Callers, clients: list[Caller]) -> None:
    path = f"/collections/{owned_collection(callers.owner, documents=[{}]).pk}"

    def ask(order: int) -> int:
        client = clients[order]
        if order % 4 == 0:
            return int(client.delete(path).status_code)
        if order % 4 == 1:
            return int(client.patch(path, {"description": str(order)}).status_code)
        return int(client.post(f"{path}/documents", {"documents": [record(str(order))]}).status_code)

    statuses = at_once(8, ask)
    assert set(statuses) <= {200, 204, 404}
    assert statuses.count(204) == 1
    assert not Document.objects.exists()


def test_concurrent_requests_build_once_and_number_versions_uniquely(callers: Callers, clients: list[Caller]) -> None:
    collection = owned_collection(callers.owner, "fruit", [{"text": "apple"}])
    path = f"/collections/{collection.pk}/indexes"
    created = at_once(8, lambda order: clients[order].post(path, {"name": "n"}).json()["version"])
    assert sorted(created) == list(range(1, 9))
    index = create_index(collection, name="other", owner=callers.owner.user)
    answers = at_once(8, lambda order: clients[order].post(f"/indexes/{index.pk}/build"))
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 7}
    operation = Operation.objects.get()
    cancelled = at_once(8, lambda order: clients[order].post(f"/operations/{operation.pk}/cancel").status_code)
    assert Counter(cancelled) == {200: 1, 409: 7}
    assert Index.objects.get(pk=index.pk).status == Index.Status.CANCELLED
