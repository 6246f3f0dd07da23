"""Operations over HTTP: what the WebSocket tells, to those who ask."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.operations.progress import snapshot
from apps.retrieval.indexing import build_index, create_index
from tests.api.callers import Caller, Callers
from tests.api.test_collections import owned

PATH = "/operations"
LISTED = {
    *("operation_id", "kind", "subject_id", "owner_id", "started_by", "queue", "status", "error"),
    *("created_at", "started_at", "finished_at"),
}


def begun(caller: Caller, name: str = "fruit") -> Operation:
    index = create_index(owned(caller, name, [{"text": "apple"}]), name="keywords", owner=caller.user)
    return build_index(index, by=caller.user)


def test_it_tells_what_the_socket_tells_first(callers: Callers) -> None:
    operation = begun(callers.owner)
    facts = callers.owner.get(f"{PATH}/{operation.pk}").json()
    assert facts == snapshot(operation)
    assert (facts["event"], facts["progress"]["stage"]) == ("index_progress", "starting")
    assert (facts["created_at"][-1], facts["started_at"]) == ("Z", None)
    assert (facts["owner_id"], facts["started_by"]) == (callers.owner.user.pk, "owner")
    listed = callers.owner.get(PATH).json()
    assert listed == {
        "operations": [{key: facts[key] for key in LISTED}],
        "total": 1,
        "page": 1,
        "per_page": 50,
    }


def test_it_lists_those_of_a_status_and_a_kind(callers: Callers) -> None:
    ended, active = begun(callers.owner, "one"), begun(callers.owner, "two")
    cancel_operation(ended)

    def ids(**query: Any) -> list[str]:
        return [row["operation_id"] for row in callers.owner.get(PATH, **query).json()["operations"]]

    assert ids() == [str(active.pk), str(ended.pk)]
    assert ids(status_filter="cancelled") == [str(ended.pk)]
    assert ids(status_filter="pending", kind="index") == [str(active.pk)]
    assert ids(kind="benchmark") == []
    assert callers.other.get(PATH).json()["total"] == 0
    assert callers.overseer.get(PATH).json()["total"] == 2


@pytest.mark.parametrize("query", [{"status_filter": "done"}, {"kind": "import"}, {"status": "failed"}, {"page": "0"}])
def test_a_bad_filter_is_named(callers: Callers, query: dict[str, str]) -> None:
    answer = callers.owner.get(PATH, **query)
    assert (answer.status_code, set(answer.json()["errors"])) == (400, set(query))


def test_it_cancels_once(callers: Callers) -> None:
    operation = begun(callers.owner)
    path = f"{PATH}/{operation.pk}/cancel"
    answer = callers.owner.post(path)
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert answer.json()["progress"]["stage"] == "cancelled"
    again = callers.owner.post(path)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert "has already ended (cancelled)" in again.json()["detail"]
    assert callers.owner.get(f"/indexes/{operation.subject_id}").json()["status"] == "cancelled"


def test_one_whose_subject_is_gone_is_still_told(callers: Callers) -> None:
    operation = begun(callers.owner)
    cancel_operation(operation)
    assert callers.owner.delete(f"/indexes/{operation.subject_id}").status_code == 204
    facts = callers.owner.get(f"{PATH}/{operation.pk}").json()
    assert (facts["status"], facts["progress"]["collection_id"]) == ("cancelled", None)


def test_the_list_takes_few_queries_whatever_its_size(
    callers: Callers, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for name in "abc":
        begun(callers.owner, name)
    callers.owner.get(PATH)
    with CaptureQueriesContext(connection) as few:
        callers.owner.get(PATH, per_page=1)
    with django_assert_max_num_queries(min(10, len(few))):
        assert callers.owner.get(PATH).json()["total"] == 3


@pytest.mark.parametrize(
    ("name", "listed", "seen", "cancelled"),
    [
        ("anonymous", 401, 401, 401),
        ("visitor", 403, 403, 403),
        ("idle", 403, 403, 403),
        ("other", 200, 403, 403),
        ("reader", 200, 200, 403),
        ("overseer", 200, 200, 200),
        ("owner", 200, 200, 200),
    ],
)
def test_each_may_do_what_is_theirs(callers: Callers, name: str, listed: int, seen: int, cancelled: int) -> None:
    path, caller = f"{PATH}/{begun(callers.owner).pk}", getattr(callers, name)
    answers = [caller.get(PATH), caller.get(path), caller.post(f"{path}/cancel")]
    assert [answer.status_code for answer in answers] == [listed, seen, cancelled]
