"""One shape for every error."""

import json
import threading
import time
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import Error, IntegrityError, connection, transaction
from django.test import Client, RequestFactory
from rest_framework.exceptions import Throttled, ValidationError

from apps.api.errors import present, server_error
from apps.api.resources import collections
from apps.collections.models import Collection
from apps.datasets.models import Dataset, DatasetVersion
from benchbench.database.failures import DeletedError, read_again, refresh
from benchbench.errors import ConflictError
from tests.api.callers import Callers


def presented(error: Exception) -> Any:
    response = present(error, {})
    assert response is not None
    return response


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (ConflictError("It runs."), 409, {"detail": "It runs.", "code": "conflict"}),
        (ValidationError(["Too long.", "Too late."]), 400, {"detail": "Too long. Too late.", "code": "invalid"}),
        (
            ValidationError({"name": ["Too long."]}),
            400,
            {"detail": "name: Too long.", "code": "invalid", "errors": {"name": ["Too long."]}},
        ),
    ],
)
def test_it_has_one_shape(error: Exception, status: int, body: dict[str, object]) -> None:
    response = presented(error)
    assert (response.status_code, response.data) == (status, body)


def test_unknown_host_gets_a_well_formed_error() -> None:
    answer = Client().get("/api/v2/benchmarks", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert "evil" not in answer.json()["detail"]
    page = Client().get("/admin/", headers={"Host": "evil.example"})
    assert (page.status_code, page["Content-Type"][:9]) == (400, "text/html")
    assert "Refused" in page.content.decode()
    assert not [word for word in ("evil", "Traceback", "URLconf", "apps.") if word in page.content.decode()]


def test_it_keeps_the_headers_of_an_error() -> None:
    assert presented(Throttled(wait=7))["Retry-After"] == "7"


@pytest.mark.parametrize("error", [ZeroDivisionError(), Dataset.DoesNotExist(), Dataset.MultipleObjectsReturned()])
def test_it_leaves_a_fault_of_ours_to_django(error: Exception) -> None:
    assert present(error, {}) is None


def test_unexpected_missing_row_is_a_logged_server_error(
    callers: Callers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    callers.owner.client.raise_request_exception = False
    monkeypatch.setattr(collections.editing, "edit_collection", lambda *_, **__: Collection.objects.get(pk=UUID(int=0)))
    collection = Collection.objects.create(name="c", owner=callers.owner.user)
    path = f"/collections/{collection.pk}"
    answer = callers.owner.ask("PATCH", path, {"description": "x"})
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert answer.json()["reference"] in caplog.text
    answer = callers.owner.get(f"/collections/{UUID(int=0)}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.django_db
def test_row_missing_on_reread_is_reported_as_deleted() -> None:
    dataset = Dataset.objects.create(name="d")
    Dataset.objects.all().delete()
    for read in (lambda: read_again(Dataset.objects.select_for_update(), dataset.pk), lambda: refresh(dataset)):
        with pytest.raises(DeletedError, match=rf"just deleted the dataset {dataset.pk}") as raised:
            read()
        response = presented(raised.value)
        assert (response.status_code, response.data["code"]) == (404, "not_found")


def in_time_limit(cursor: Any) -> None:
    cursor.execute("SET LOCAL statement_timeout = '10ms'")
    cursor.execute("SELECT pg_sleep(10)")


def under_a_lock(cursor: Any) -> None:
    with psycopg.connect(**parameters()) as second:
        second.execute("SELECT pg_advisory_xact_lock(1)")
        cursor.execute("SET LOCAL lock_timeout = '10ms'")
        cursor.execute("SELECT pg_advisory_xact_lock(1)")


def in_a_deadlock(cursor: Any) -> None:
    """Wait for what the other transaction has, which waits for what this one has."""
    cursor.execute("SELECT pg_advisory_xact_lock(1)")
    with psycopg.connect(**parameters()) as second:
        second.execute("SET deadlock_timeout = '1h'")  # so that PostgreSQL undoes this one
        second.execute("SELECT pg_advisory_xact_lock(2)")
        waiting = threading.Thread(target=lambda: second.execute("SELECT pg_advisory_xact_lock(1)"))
        waiting.start()
        cursor.execute("SET LOCAL deadlock_timeout = '10ms'")
        pid = second.info.backend_pid
        while cursor.execute("SELECT FROM pg_locks WHERE pid = %s AND NOT granted", [pid]).rowcount == 0:
            time.sleep(0.005)
        try:
            cursor.execute("SELECT pg_advisory_xact_lock(2)")
        finally:
            waiting.join()


def too_long(cursor: Any) -> None:
    cursor.execute("CREATE TEMP TABLE short (a varchar(3))")
    cursor.execute("INSERT INTO short VALUES (%s)", ["1234"])


def too_long_to_index(cursor: Any) -> None:
    cursor.execute("CREATE TEMP TABLE indexed (a text UNIQUE)")
    cursor.execute("INSERT INTO indexed SELECT string_agg(md5(n::text), '') FROM generate_series(1, 200) n")


def too_large(cursor: Any) -> None:
    cursor.execute("SELECT 2147483648::int")


def with_nul(cursor: Any) -> None:
    cursor.execute("SELECT %s", ["a\0b"])


def broken_off(cursor: Any) -> None:
    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def unforeseen(cursor: Any) -> None:
    cursor.execute("SELECT string_agg(repeat(md5(n::text), 1), ' ')::tsvector FROM generate_series(1, 60000) n")


def parameters() -> dict[str, Any]:
    return {key: value for key, value in connection.get_connection_params().items() if key in CONNECTION_KEYS}


CONNECTION_KEYS = ("dbname", "user", "password", "host", "port")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("fail", "status", "code", "sentence"),
    [
        (in_a_deadlock, 409, "deadlock", "locked the same rows in a different order"),
        (under_a_lock, 409, "locked", "has locked these rows"),
        (in_time_limit, 503, "statement_cancelled", "it exceeded statement_timeout"),
        (too_long, 400, "unfit_value", "a text is too long for its field of at most 3 characters"),
        (too_long_to_index, 400, "unfit_value", "a name or an address is too long"),
        (too_large, 400, "unfit_value", "a number is too large"),
        (with_nul, 400, "unfit_value", "a value does not fit its field"),
        (broken_off, 503, "unavailable", "PostgreSQL or Redis does not respond"),
        (unforeseen, 500, "server_error", ""),
    ],
)
def test_postgresql_failures_have_their_own_codes(
    fail: Any, status: int, code: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Error) as raised, transaction.atomic(), connection.cursor() as cursor:
        fail(cursor)
    connection.close()
    if status == 500:
        assert present(raised.value, {}) is None
    else:
        response = presented(raised.value)
        assert (response.status_code, response.data["code"]) == (status, code)
        assert sentence in response.data["detail"]
        assert response.data["reference"] in caplog.text
        assert ("Retry-After" in response) == (status == 503)
    try:
        raise raised.value
    except Error:
        page = server_error(RequestFactory().get("/admin/"))
        answer = server_error(RequestFactory().get("/api/v2/datasets"))
    assert (page.status_code, answer.status_code, json.loads(answer.content)["code"]) == (status, status, code)
    assert sentence in page.content.decode()


@pytest.mark.django_db
def test_row_deleted_during_a_request_returns_a_conflict() -> None:
    @transaction.atomic
    def add_version() -> None:
        DatasetVersion.objects.create(dataset_id=UUID(int=0), number=1)
        connection.check_constraints()

    with pytest.raises(IntegrityError) as raised:
        add_version()
    response = presented(raised.value)
    assert (response.status_code, response.data["code"]) == (409, "conflict")
