"""Requests at the same time, on connections of their own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connections

from apps.api.models import KeptAnswer
from apps.datasets.models import Dataset
from apps.operations.models import Operation
from apps.retrieval.indexing import create_index
from tests.api.callers import Caller, Callers
from tests.api.test_benchmarks import made
from tests.api.test_collections import owned
from tests.api.test_datasets import PATH, questions
from tests.benchmarks.conftest import make_library
from tests.factories import make_dataset, make_mapping

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(number: int, ask: Callable[[int], Any]) -> list[Any]:
    """Call `ask` in threads that begin together."""
    ready = Barrier(number)

    def one(order: int) -> Any:
        try:
            ready.wait()
            return ask(order)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def test_one_key_at_once_is_done_once(callers: Callers) -> None:
    callers.owner.get(PATH)
    clients = [Caller(callers.owner.user) for _ in range(5)]
    answers = at_once(5, lambda order: clients[order].upload(PATH, questions("a"), name="n", idempotency_key="k"))
    assert {answer.status_code for answer in answers} == {201}
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 4
    assert len({answer.content for answer in answers}) == 1
    assert (Dataset.objects.count(), KeptAnswer.objects.count()) == (1, 1)


def test_a_server_that_stops_before_it_answers_has_done_nothing(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = callers.owner
    owner.client.raise_request_exception = False
    with monkeypatch.context() as stopped:
        stopped.setattr("apps.api.idempotency.JSONRenderer", None)
        assert owner.upload(PATH, questions("a"), name="n", idempotency_key="k").status_code == 500
    assert not Dataset.objects.exists()
    again = owner.upload(PATH, questions("a"), name="n", idempotency_key="k")
    assert (again.status_code, again.headers.get("Idempotent-Replayed")) == (201, None)


def test_requests_at_once_are_all_counted(callers: Callers, settings: Any) -> None:
    settings.BENCHBENCH_API_RATES = settings.BENCHBENCH_API_RATES | {"read": (4, 3600)}
    clients = [Caller(callers.owner.user) for _ in range(8)]
    cache.clear()
    statuses = at_once(8, lambda order: clients[order].get(PATH).status_code)
    assert sorted(statuses) == [200] * 4 + [429] * 4


@pytest.mark.parametrize("keyed", [False, True])
def test_starts_at_once_do_not_pass_the_quota(callers: Callers, settings: Any, keyed: bool) -> None:
    settings.BENCHMARK_MAX_RUNNING_PER_USER = 2
    mapping = make_library(documents=6, queries=2)
    rows = [made(callers.owner, mapping, name=str(number)) for number in range(6)]
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
    owner, collection = callers.owner, owned(callers.owner, "fruit", [{"text": "apple"}])
    paths = {"index": [], "resolve": []}
    for name in ("a", "b"):
        index = create_index(collection, name=name, owner=owner.user)
        dataset = make_dataset({"q": [({"document_id": "d1"}, 1)]}, name=name)
        dataset.owner = owner.user
        dataset.save()
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
