"""Baselines over HTTP: who approved which run, and until when it served."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from apps.benchmarks.gates.baselines import approve
from apps.benchmarks.models import Baseline, Benchmark, Run
from tests.api.callers import Caller, Callers
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

UNKNOWN = "00000000-0000-4000-8000-000000000000"
FIELDS = {
    *("id", "dataset_id", "name", "reason", "benchmark_id", "run_id", "run_label"),
    *("approved_by", "approved_at", "retired_by", "retired_at"),
}


@pytest.fixture
def benchmark(callers: Callers) -> Benchmark:
    """The owner's, with two completed runs and one that failed, of a dataset that nobody owns."""
    mapping = make_mapping(make_dataset({"q": []}), make_collection())
    return make_benchmark(mapping, [0.5, 0.6, None], owner=callers.owner.user)


def path(benchmark: Benchmark) -> str:
    return f"/benchmark-datasets/{benchmark.dataset_version.dataset_id}/baselines"


def asked(run: Run, **fields: Any) -> dict[str, Any]:
    return {"run_id": str(run.pk), "name": "main", "reason": "The release of May."} | fields


def pin(caller: Caller, run: Run, **fields: Any) -> Any:
    return caller.post(path(run.benchmark), asked(run, **fields))


def test_it_approves_a_run_and_tells_its_fields(callers: Callers, benchmark: Benchmark) -> None:
    run = benchmark.runs.get(run_order=1)
    answer = pin(callers.owner, run, name=" main ")
    assert answer.status_code == 201, answer.content
    facts = answer.json()
    assert set(facts) == FIELDS
    assert {key: facts[key] for key in FIELDS - {"id", "approved_at"}} == {
        "dataset_id": str(benchmark.dataset_version.dataset_id),
        "name": "main",
        "reason": "The release of May.",
        "benchmark_id": str(benchmark.pk),
        "run_id": str(run.pk),
        "run_label": "dense · top 10",
        "approved_by": "owner",
        "retired_by": None,
        "retired_at": None,
    }
    assert callers.owner.get(f"{path(benchmark)}/{facts['id']}").json() == facts
    listed = callers.owner.get(path(benchmark)).json()
    assert listed == {"baselines": [facts], "total": 1, "page": 1, "per_page": 50}


def test_the_next_of_a_name_retires_the_one_before(callers: Callers, benchmark: Benchmark) -> None:
    first, second, _ = benchmark.runs.all()
    old, new = pin(callers.owner, first).json(), pin(callers.owner, second).json()

    def ids(**query: str) -> list[str]:
        return [row["id"] for row in callers.owner.get(path(benchmark), **query).json()["baselines"]]

    assert (ids(), ids(retired="true"), ids(retired="false")) == ([new["id"], old["id"]], [old["id"]], [new["id"]])
    retired = callers.owner.get(f"{path(benchmark)}/{old['id']}").json()
    assert (retired["retired_by"], retired["retired_at"] is not None) == ("owner", True)


def test_it_retires_once(callers: Callers, benchmark: Benchmark) -> None:
    address = f"{path(benchmark)}/{pin(callers.owner, benchmark.runs.get(run_order=1)).json()['id']}"
    answer = callers.owner.post(f"{address}/retire", idempotency_key="once")
    assert (answer.status_code, answer.json()["retired_by"]) == (200, "owner")
    assert answer.json() == callers.owner.get(address).json()
    again = callers.owner.post(f"{address}/retire", idempotency_key="once")
    assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
    refused = callers.owner.post(f"{address}/retire")
    assert (refused.status_code, refused.json()["code"]) == (409, "baseline")
    assert "is retired already" in refused.json()["detail"]


def test_it_is_deleted_once_it_is_retired(callers: Callers, benchmark: Benchmark) -> None:
    address = f"{path(benchmark)}/{pin(callers.owner, benchmark.runs.get(run_order=1)).json()['id']}"
    refused = callers.owner.delete(address)
    assert (refused.status_code, refused.json()["code"]) == (409, "baseline")
    callers.owner.post(f"{address}/retire")
    assert [callers.owner.delete(address).status_code for _ in range(2)] == [204, 404]
    assert callers.owner.delete(f"/benchmarks/{benchmark.pk}").status_code == 204


@pytest.mark.parametrize(
    ("order", "fields", "status", "field", "told"),
    [
        (1, {"name": " "}, 400, "name", "may not be blank"),
        (1, {"name": "x" * 201}, 400, "name", "more than 200 characters"),
        (1, {"reason": ""}, 400, "reason", "may not be blank"),
        (1, {"run_id": "x"}, 400, "run_id", "Must be a valid UUID."),
        (1, {"run_id": 5}, 400, "run_id", "Must be a valid UUID."),
        (1, {"by": 1}, 400, "by", "Unknown key"),
        (1, {"run_id": UNKNOWN}, 404, "", "There is no run"),
        (2, {}, 409, "name", "already"),
        (3, {}, 409, "", "is failed: only a completed run"),
    ],
)
def test_it_says_what_is_wrong(
    callers: Callers, benchmark: Benchmark, order: int, fields: dict[str, Any], status: int, field: str, told: str
) -> None:
    pin(callers.owner, benchmark.runs.get(run_order=2))
    answer = pin(callers.owner, benchmark.runs.get(run_order=order), **fields)
    assert answer.status_code == status, answer.content
    assert told in answer.json()["detail"]
    assert set(answer.json().get("errors", {})) == ({field} if field else set())
    assert Baseline.objects.count() == 1


def test_what_belongs_elsewhere_is_not_found(callers: Callers, benchmark: Benchmark) -> None:
    mapping = make_mapping(make_dataset({"q": []}, name="other"), make_collection("other"), name="other")
    other = make_benchmark(mapping, [0.5])
    here = pin(callers.owner, benchmark.runs.get(run_order=1)).json()["id"]
    assert callers.owner.get(f"{path(other)}/{here}").status_code == 404
    assert callers.owner.post(f"{path(other)}/{here}/retire").status_code == 404
    answer = callers.owner.post(path(other), asked(benchmark.runs.get(run_order=1)))
    assert answer.status_code == 404


def test_what_others_own_is_neither_listed_nor_replaced(callers: Callers, benchmark: Benchmark) -> None:
    pinned = approve(benchmark.runs.get(run_order=1), name="main", reason="Because.", by=callers.owner.user)
    mine = make_benchmark(benchmark.mapping, [0.5], owner=callers.other.user).runs.get()
    assert callers.other.get(path(benchmark)).json()["total"] == 0
    assert callers.other.get(f"{path(benchmark)}/{pinned.pk}").status_code == 403
    assert pin(callers.other, benchmark.runs.get(run_order=1)).status_code == 403
    taken = pin(callers.other, mine)
    assert (taken.status_code, set(taken.json()["errors"])) == (409, {"name"})
    assert "A baseline that you may not see has this name" in taken.json()["detail"]
    assert Baseline.objects.get().retired_at is None


@pytest.mark.parametrize(
    ("name", "listed", "seen", "made", "retired"),
    [
        ("anonymous", 401, 401, 401, 401),
        ("visitor", 403, 403, 403, 403),
        ("idle", 403, 403, 403, 403),
        ("other", 200, 403, 403, 403),
        ("reader", 200, 200, 403, 403),
        ("overseer", 200, 200, 201, 200),
        ("owner", 200, 200, 201, 200),
    ],
)
def test_each_may_do_what_is_theirs(
    callers: Callers, benchmark: Benchmark, name: str, listed: int, seen: int, made: int, retired: int
) -> None:
    first, second, _ = benchmark.runs.all()
    baseline = approve(first, name="main", reason="Because.", by=callers.owner.user)
    caller = getattr(callers, name)
    answers = [
        caller.get(path(benchmark)),
        caller.get(f"{path(benchmark)}/{baseline.pk}"),
        pin(caller, second, name="other"),
        caller.post(f"{path(benchmark)}/{baseline.pk}/retire"),
    ]
    assert [answer.status_code for answer in answers] == [listed, seen, made, retired]


def test_a_list_takes_few_queries_whatever_its_size(
    callers: Callers, benchmark: Benchmark, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        pin(callers.owner, benchmark.runs.get(run_order=1), name=f"baseline {number}")
    callers.owner.get(path(benchmark))
    with CaptureQueriesContext(connection) as few:
        callers.owner.get(path(benchmark), per_page=1)
    with django_assert_max_num_queries(min(10, len(few))):
        callers.owner.get(path(benchmark), per_page=3)
