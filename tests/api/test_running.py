"""Benchmarks over HTTP: started, cancelled, retried."""

from typing import Any

import pytest
from django.contrib.auth.models import Group

from apps.benchmarks.models import Benchmark, QueryResult, Run
from apps.mappings.models import Mapping
from apps.operations.models import Operation, Status
from apps.operations.working import wait
from tests.api.callers import Callers
from tests.api.test_benchmarks import FIELDS, PATH, asked, made
from tests.benchmarks.conftest import make_library
from tests.rankings import change_rankings


@pytest.fixture
def library(db: None) -> Mapping:
    return make_library(documents=6, queries=2)


def test_it_starts_and_ends_and_does_not_start_again(callers: Callers, library: Mapping) -> None:
    row = made(callers.owner, library)
    answer = callers.owner.post(f"{PATH}/{row.pk}/start")
    assert answer.status_code == 200, answer.content
    row.refresh_from_db()
    told = {"id": str(row.pk), "status": "running", "operation_uuid": str(row.operation_id)}
    assert answer.json() == told | {"message": "The benchmark is started."}
    assert row.operation is not None
    assert row.operation.started_by == callers.owner.user
    for act, message in (("start", "running already"), ("retry", "is running: wait")):
        refused = callers.owner.post(f"{PATH}/{row.pk}/{act}")
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert message in refused.json()["detail"]
    assert "cancel it before" in callers.owner.delete(f"{PATH}/{row.pk}").json()["detail"]
    wait(row.operation)
    facts = callers.owner.get(f"{PATH}/{row.pk}").json()
    assert (facts["status"], facts["completed_runs"]) == ("completed", 1)
    assert facts["operation_uuid"] == str(row.operation_id)
    assert facts["completed_at"] > facts["started_at"]
    for act in ("start", "retry", "cancel"):
        assert callers.owner.post(f"{PATH}/{row.pk}/{act}").status_code == 409
    assert callers.owner.delete(f"{PATH}/{row.pk}").status_code == 204
    assert callers.owner.get(f"{PATH}/{row.pk}").status_code == 404


@pytest.mark.parametrize("act", ["start", "cancel", "retry"])
def test_it_starts_nothing_where_something_is_stated_that_does_nothing(
    callers: Callers, library: Mapping, act: str
) -> None:
    row = made(callers.owner, library)
    refused = callers.owner.post(f"{PATH}/{row.pk}/{act}", {"dry_run": True})
    assert refused.status_code == 400
    assert "No key is allowed here: leave out 'dry_run'." in refused.content.decode()
    row.refresh_from_db()
    assert row.status == Status.PENDING


def test_it_cancels_and_resumes(callers: Callers, library: Mapping) -> None:
    row = made(callers.owner, library)
    early = callers.owner.post(f"{PATH}/{row.pk}/cancel")
    assert (early.status_code, "not running" in early.json()["detail"]) == (409, True)
    callers.owner.post(f"{PATH}/{row.pk}/start")
    answer = callers.owner.post(f"{PATH}/{row.pk}/cancel")
    assert (answer.status_code, set(answer.json()), answer.json()["status"]) == (200, FIELDS, "cancelled")
    assert callers.owner.post(f"{PATH}/{row.pk}/start").json()["status"] == "running"


def test_it_runs_what_failed_again(callers: Callers, library: Mapping) -> None:
    row = made(callers.owner, library)
    callers.owner.post(f"{PATH}/{row.pk}/start")
    row.refresh_from_db()
    assert row.operation is not None
    wait(row.operation)
    change_rankings(QueryResult.objects.filter(run__benchmark=row, query__key="q000"), error="The index was away.")
    row.runs.update(failed_queries=1)
    answer = callers.owner.post(f"{PATH}/{row.pk}/retry")
    assert (answer.status_code, answer.json()["message"]) == (200, "The failed runs are started again.")
    wait(Operation.objects.get(pk=answer.json()["operation_uuid"]))
    assert not QueryResult.objects.exclude(error="").exists()
    assert row.runs.get().status == Run.Status.COMPLETED


def test_a_user_has_so_many_running(callers: Callers, library: Mapping, settings: Any) -> None:
    settings.BENCHMARK_MAX_RUNNING_PER_USER = 1
    one, two = (made(callers.owner, library, name=name) for name in ("one", "two"))
    callers.owner.post(f"{PATH}/{one.pk}/start")
    refused = callers.owner.post(f"{PATH}/{two.pk}/start")
    assert (refused.status_code, refused.json()["code"]) == (409, "quota")
    two.refresh_from_db()
    assert two.status == Status.PENDING
    assert callers.overseer.post(f"{PATH}/{two.pk}/start").status_code == 200  # who starts it is who is counted


def test_a_key_makes_and_starts_once(callers: Callers, library: Mapping) -> None:
    first, again = (callers.owner.post(PATH, asked(library), idempotency_key="k") for _ in range(2))
    assert (first.content, again["Idempotent-Replayed"]) == (again.content, "true")
    start = f"{PATH}/{Benchmark.objects.get().pk}/start"
    first, again = (callers.owner.post(start, idempotency_key="k") for _ in range(2))
    assert (first.status_code, first.content) == (200, again.content)
    assert Operation.objects.filter(kind="benchmark").count() == 1


def test_the_team_of_a_benchmark_watches_it(callers: Callers, library: Mapping) -> None:
    benchmark = made(callers.owner, library)
    team = Group.objects.create(name="search")
    callers.other.user.groups.add(team)
    Benchmark.objects.update(team=team)
    begun = callers.owner.post(f"{PATH}/{benchmark.pk}/start").json()
    assert callers.other.get(f"/operations/{begun['operation_uuid']}").status_code == 200
    listed = callers.other.get("/operations").json()["operations"]
    assert begun["operation_uuid"] in [one["operation_id"] for one in listed]
