"""One shape for every error."""

from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from rest_framework.exceptions import Throttled, ValidationError

from apps.api.errors import present
from apps.datasets.models import Dataset, DatasetVersion
from benchbench.errors import ConflictError


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (ConflictError("It runs."), 409, {"detail": "It runs.", "code": "conflict"}),
        (ValidationError(["Too long.", "Too late."]), 400, {"detail": "Too long. Too late.", "code": "invalid"}),
        (
            Dataset.DoesNotExist(),
            404,
            {"detail": "It was deleted while it was asked for.", "code": "not_found"},
        ),
        (
            ValidationError({"name": ["Too long."]}),
            400,
            {"detail": "name: Too long.", "code": "invalid", "errors": {"name": ["Too long."]}},
        ),
    ],
)
def test_it_has_one_shape(error: Exception, status: int, body: dict[str, object]) -> None:
    response = present(error, {})
    assert response is not None
    assert (response.status_code, response.data) == (status, body)


def test_a_host_that_is_not_ours_is_told_in_the_shape() -> None:
    answer = Client().get("/api/v2/benchmarks", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
    assert "evil" not in answer.json()["detail"]
    assert Client().get("/admin/", headers={"Host": "evil.example"})["Content-Type"].startswith("text/html")


def test_it_keeps_the_headers_of_an_error() -> None:
    response = present(Throttled(wait=7), {})
    assert response is not None
    assert response["Retry-After"] == "7"


def test_it_leaves_a_fault_of_ours_to_django() -> None:
    assert present(ZeroDivisionError(), {}) is None


@pytest.mark.django_db
def test_what_is_deleted_under_a_request_is_a_conflict() -> None:
    @transaction.atomic
    def add_version() -> None:
        DatasetVersion.objects.create(dataset_id=UUID(int=0), number=1)
        connection.check_constraints()

    with pytest.raises(IntegrityError) as raised:
        add_version()
    response = present(raised.value, {})
    assert response is not None
    assert (response.status_code, response.data["code"]) == (409, "conflict")
