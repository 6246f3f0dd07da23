"""Collections and indexes that several clients fill, build and delete at the same time."""

from collections import Counter

import pytest

from apps.collections.models import Collection, Document
from apps.operations.models import Operation
from apps.retrieval.indexing import create_index
from apps.retrieval.models import Index
from tests.api.callers import Caller, Callers
from tests.api.test_at_once import at_once
from tests.api.test_collections import CORPUS, owned, record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clients(callers: Callers) -> list[Caller]:
    return [Caller(callers.owner.user) for _ in range(8)]


def test_one_of_those_who_upload_a_name_has_it(clients: list[Caller]) -> None:
    answers = at_once(8, lambda order: clients[order].upload("/collections", CORPUS, file_name="c.jsonl", name="n"))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 7}
    assert Collection.objects.get().document_count == Document.objects.count() == 2


def test_no_document_is_lost(callers: Callers, clients: list[Caller]) -> None:
    collection = owned(callers.owner)
    path = f"/collections/{collection.pk}/documents"

    def fill(order: int) -> int:
        documents = [record("shared", str(order)), *(record(f"{order}-{number}") for number in range(20))]
        status: int = clients[order].post(path, {"documents": documents}).status_code
        return status

    assert set(at_once(8, fill)) == {200}
    collection.refresh_from_db()
    assert collection.document_count == Document.objects.count() == 8 * 20 + 1


def test_what_is_deleted_while_it_is_filled_is_gone_or_filled(callers: Callers, clients: list[Caller]) -> None:
    path = f"/collections/{owned(callers.owner, documents=[{}]).pk}"

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


def test_an_index_is_built_once_and_every_version_has_its_number(callers: Callers, clients: list[Caller]) -> None:
    collection = owned(callers.owner, "fruit", [{"text": "apple"}])
    path = f"/collections/{collection.pk}/indexes"
    made = at_once(8, lambda order: clients[order].post(path, {"name": "n"}).json()["version"])
    assert sorted(made) == list(range(1, 9))
    index = create_index(collection, name="other", owner=callers.owner.user)
    answers = at_once(8, lambda order: clients[order].post(f"/indexes/{index.pk}/build"))
    assert Counter(answer.status_code for answer in answers) == {202: 1, 409: 7}
    operation = Operation.objects.get()
    cancelled = at_once(8, lambda order: clients[order].post(f"/operations/{operation.pk}/cancel").status_code)
    assert Counter(cancelled) == {200: 1, 409: 7}
    assert Index.objects.get(pk=index.pk).status == Index.Status.CANCELLED
