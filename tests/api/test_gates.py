"""Baselines and gates over HTTP: who approved which run, and what a pipeline asks and is answered."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from apps.records.models import Baseline, Benchmark, Run
from apps.verdicts.gates.baselines import approve
from tests.api.addresses import UNKNOWN
from tests.api.callers import Caller, Callers, assert_refused, checked_json
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping
from tests.staff import MakeStaff

RULES = "floors: {mrr: 0.7}\nagainst_baseline: {nDCG@10: {may_lose: 0.01}}\n"
FLOOR = {"floors": {"mrr": 0.7}}
Ask = Callable[..., Any]


@pytest.fixture
def benchmark_of_two(db: None) -> Benchmark:
    """Two runs, of which the first is better and the baseline `main`. No one owns them."""
    hits = search(make_gated(), GOOD, POOR)
    pinned(hits.runs.get(run_order=1))
    return hits


@pytest.fixture
def ada(make_staff: MakeStaff) -> User:
    return make_staff("ada lovelace", may=("view",))


@pytest.fixture
def ask(client: Client, ada: User) -> Ask:
    """Post to the gate of a run or a benchmark as ada."""
    client.force_login(ada)

    def post(subject: Run | Benchmark, body: Any) -> Any:
        return client.post(address(subject), body, content_type="application/json")

    return post


def address(subject: Run | Benchmark) -> str:
    return f"/api/v2/{'runs' if isinstance(subject, Run) else 'benchmarks'}/{subject.pk}/gate"


def test_gate_result_matches_the_command(
    ask: Ask, benchmark_of_two: Benchmark, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(RULES)
    call_command("gate", "nightly", rules=file, baseline="main", json=True)
    data = json.loads(capsys.readouterr().out)
    answer = ask(benchmark_of_two, {"rules": RULES, "baseline": "main"})
    assert answer.status_code == 200
    facts = answer.json()
    assert facts.pop("markdown").startswith("## Gate passed: ")
    assert facts == data
    assert (facts["outcome"], facts["baseline"]["name"], facts["runs"][0]["run_order"]) == ("passed", "main", 1)


def test_it_judges_the_run_that_is_asked_for(ask: Ask, benchmark_of_two: Benchmark) -> None:
    worse = benchmark_of_two.runs.get(run_order=2)
    outcomes = {
        "best": ask(benchmark_of_two, {"rules": FLOOR}),
        "second": ask(benchmark_of_two, {"rules": FLOOR, "run": 2}),
        "all": ask(benchmark_of_two, {"rules": FLOOR, "run": "all"}),
        "named": ask(worse, {"rules": RULES, "baseline": "main"}),
    }
    assert {name: (answer.status_code, answer.json()["outcome"]) for name, answer in outcomes.items()} == {
        "best": (200, "passed"),
        "second": (200, "failed"),
        "all": (200, "failed"),
        "named": (200, "failed"),
    }
    assert len(outcomes["all"].json()["runs"]) == 2
    assert outcomes["named"].json()["runs"][0]["id"] == str(worse.pk)


def test_undecided_gate_does_not_pass(ask: Ask, benchmark_of_two: Benchmark) -> None:
    answer = ask(benchmark_of_two, {"rules": {"slices": {"nowhere": {"mrr": 0.7}}}})
    assert (answer.status_code, answer.json()["outcome"]) == (200, "undecided")


def test_rules_are_the_same_as_text_and_as_object(ask: Ask, benchmark_of_two: Benchmark) -> None:
    fields = {
        "floors": {"mrr": 1},
        "must_not_fail": [{"queries": ["q01", "q20"], "relevant_in_top": 2}],
        "coverage": {"failed_queries": 0},
        "alpha": 1e-3,
    }
    text = (
        "floors: {mrr: 1}\nmust_not_fail: [{queries: [q01, q20], relevant_in_top: 2}]\n"
        "coverage: {failed_queries: 0}\nalpha: 0.001"
    )
    one, second = (ask(benchmark_of_two, {"rules": rules}) for rules in (fields, text))
    assert one.status_code == 200
    assert one.json() == second.json()


def test_invalid_rules_are_rejected_at_their_field(ask: Ask, benchmark_of_two: Benchmark) -> None:
    refused: list[tuple[Any, str, str]] = [
        ({"rules": {"floors": {"mrr": 7}}}, "rules", "rules, floors.mrr must be a number from 0 to 1, not 7"),
        ({"rules": "x" * 100_001}, "rules", "at most 100,000"),
        ({"rules": {"x" * 100_001: 1}}, "rules", "at most 100,000"),
        ({"rules": FLOOR, "baseline": "other"}, "baseline", "has no current baseline 'other'; choose one of main."),
        ({"rules": RULES}, "baseline", "compare runs with a baseline (against_baseline): choose one."),
        ({"rules": FLOOR, "run": 7}, "run", "has no run 7"),
        ({"rules": FLOOR, "run": 10**30}, "run", "has no run"),
        ({"rules": FLOOR, "run": True}, "run", 'or "all"'),
    ]
    for body, field, message in refused:
        assert_refused(ask(benchmark_of_two, body), 400, message=message, field=field)


def test_it_refuses_a_body_that_is_no_request(ask: Ask, benchmark_of_two: Benchmark) -> None:
    for body in ("[]", ""):
        assert_refused(ask(benchmark_of_two, body), 400, "invalid")
    for body in ("{", '{"rules": "a", "rules": "b"}', "[" * 100_000, b"\xff"):
        assert_refused(ask(benchmark_of_two, body), 400, "malformed")
    assert_refused(ask(benchmark_of_two, '"' + "x" * 2_700_000 + '"'), 413, "too_large")


def test_a_state_that_forbids_the_gate_is_a_conflict(ask: Ask, benchmark_of_two: Benchmark) -> None:
    run = benchmark_of_two.runs.get(run_order=2)
    benchmark_of_two.runs.update(status=Run.Status.CANCELLED)
    for subject in (benchmark_of_two, run):
        assert_refused(ask(subject, {"rules": FLOOR}), 409, "gate")


def test_subjects_of_other_owners_are_refused_and_unnamed(
    ask: Ask, benchmark_of_two: Benchmark, make_staff: MakeStaff
) -> None:
    grace = make_staff("grace")
    secret = search(benchmark_of_two.mapping, GOOD, name="secret", owner=grace)
    baseline = pinned(secret.runs.get(), name="hidden")
    for subject in (secret, secret.runs.get()):
        assert_refused(ask(subject, {"rules": FLOOR}), 403, "permission_denied")
    for labelled in ("hidden", str(baseline.pk)):
        assert_refused(
            ask(benchmark_of_two, {"rules": RULES, "baseline": labelled}), 400, message="choose one of main."
        )


@pytest.fixture
def benchmark(callers: Callers) -> Benchmark:
    """The owner's, with two completed runs and one that failed, of a dataset that no one owns."""
    mapping = make_mapping(make_dataset({"q": []}), make_collection())
    return make_benchmark(mapping, [0.5, 0.6, None], owner=callers.owner.user)


def path(benchmark: Benchmark) -> str:
    return f"/benchmark-datasets/{benchmark.dataset_version.dataset_id}/baselines"


def baseline_body(run: Run, **fields: Any) -> dict[str, Any]:
    return {"run_id": str(run.pk), "name": "main", "reason": "The release of May."} | fields


def pin(caller: Caller, run: Run, **fields: Any) -> Any:
    return caller.post(path(run.benchmark), baseline_body(run, **fields))


def test_post_approves_a_run_and_returns_its_fields(callers: Callers, benchmark: Benchmark) -> None:
    run = benchmark.runs.get(run_order=1)
    facts = checked_json(pin(callers.owner, run, name=" main "), 201)
    assert facts == {
        "id": facts["id"],
        "approved_at": facts["approved_at"],
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
    assert_refused(callers.owner.post(f"{address}/retire"), 409, "baseline", "is already retired")


def test_it_is_deleted_once_it_is_retired(callers: Callers, benchmark: Benchmark) -> None:
    address = f"{path(benchmark)}/{pin(callers.owner, benchmark.runs.get(run_order=1)).json()['id']}"
    assert_refused(callers.owner.delete(address), 409, "baseline")
    callers.owner.post(f"{address}/retire")
    assert [callers.owner.delete(address).status_code for _ in range(2)] == [204, 404]
    assert callers.owner.delete(f"/benchmarks/{benchmark.pk}").status_code == 204


@pytest.mark.parametrize(
    ("order", "fields", "status", "field", "message"),
    [
        (1, {"run_id": str(UNKNOWN)}, 404, "", f"The run {UNKNOWN} does not exist."),
        (2, {}, 409, "name", "already"),
        (3, {}, 409, "", "is failed: only a completed run"),
    ],
)
def test_invalid_approval_is_rejected_with_a_reason(
    callers: Callers, benchmark: Benchmark, order: int, fields: dict[str, Any], status: int, field: str, message: str
) -> None:
    pin(callers.owner, benchmark.runs.get(run_order=2))
    assert_refused(
        pin(callers.owner, benchmark.runs.get(run_order=order), **fields), status, message=message, field=field
    )
    assert Baseline.objects.count() == 1


def test_a_run_of_another_dataset_is_not_found(callers: Callers, benchmark: Benchmark) -> None:
    second = make_dataset({"q": []}, name="other")
    answer = callers.owner.post(
        f"/benchmark-datasets/{second.pk}/baselines", baseline_body(benchmark.runs.get(run_order=1))
    )
    assert answer.status_code == 404


def test_baselines_of_other_owners_are_neither_listed_nor_replaced(callers: Callers, benchmark: Benchmark) -> None:
    approve(benchmark.runs.get(run_order=1), name="main", reason="Because.", by=callers.owner.user)
    mine = make_benchmark(benchmark.mapping, [0.5], owner=callers.other.user).runs.get()
    assert callers.other.get(path(benchmark)).json()["total"] == 0
    assert pin(callers.other, benchmark.runs.get(run_order=1)).status_code == 403
    assert_refused(pin(callers.other, mine), 409, field="name", message="A baseline that you may not see has this name")
    assert Baseline.objects.get().retired_at is None
