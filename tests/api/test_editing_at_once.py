"""Edits of one dataset at the same time: one draft gathers them all, and nothing is lost."""

import pytest

from apps.datasets.versions import stored_hash
from tests.api.callers import Caller, Callers
from tests.api.test_at_once import at_once
from tests.api.test_queries import PEAR, fruit, path_of

pytestmark = pytest.mark.django_db(transaction=True)


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
    assert all(stored_hash(version) == version.content_hash for version in dataset.versions.all())
