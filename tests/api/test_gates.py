"""The gate as an endpoint: what a pipeline asks, what it is answered, and who may ask."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from apps.benchmarks.models import Benchmark, Run
from tests.admin.conftest import MakeStaff, make_staff  # noqa: F401 (a fixture)
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search

RULES = "floors: {mrr: 0.7}\nagainst_baseline: {nDCG@10: {may_lose: 0.01}}\n"
FLOOR = {"floors": {"mrr": 0.7}}
Ask = Callable[..., Any]


@pytest.fixture
def benchmark_of_two(db: None) -> Benchmark:
    """Two runs, of which the first is better and the baseline `main`. Nobody owns them."""
    made = search(make_gated(), GOOD, POOR)
    pinned(made.runs.get(run_order=1))
    return made


@pytest.fixture
def ada(make_staff: MakeStaff) -> User:  # noqa: F811
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


def test_it_says_what_the_command_says(
    ask: Ask, benchmark_of_two: Benchmark, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(RULES)
    call_command("gate", "nightly", rules=file, baseline="main", json=True)
    told = json.loads(capsys.readouterr().out)
    answer = ask(benchmark_of_two, {"rules": RULES, "baseline": "main"})
    assert answer.status_code == 200
    facts = answer.json()
    assert facts.pop("markdown").startswith("## Gate passed: ")
    assert facts == told
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


def test_what_cannot_be_decided_is_no_pass(ask: Ask, benchmark_of_two: Benchmark) -> None:
    answer = ask(benchmark_of_two, {"rules": {"slices": {"nowhere": {"mrr": 0.7}}}})
    assert (answer.status_code, answer.json()["outcome"]) == (200, "undecided")


def test_rules_are_the_same_as_text_and_as_object(ask: Ask, benchmark_of_two: Benchmark) -> None:
    stated = {
        "floors": {"mrr": 1},
        "must_not_fail": [{"queries": ["q01", "q20"], "relevant_in_top": 2}],
        "coverage": {"failed_queries": 0},
        "alpha": 1e-3,
    }
    text = (
        "floors: {mrr: 1}\nmust_not_fail: [{queries: [q01, q20], relevant_in_top: 2}]\n"
        "coverage: {failed_queries: 0}\nalpha: 0.001"
    )
    one, other = (ask(benchmark_of_two, {"rules": rules}) for rules in (stated, text))
    assert one.status_code == 200
    assert one.json() == other.json()


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({"rules": {"floors": {"mrr": 7}}}, "rules", "rules: floors.mrr: '7' is out of range"),
        ({"rules": {"floors": {"mrr": None}}}, "rules", "rules: floors.mrr: 'null' is not a number"),
        (
            {"rules": "floors: {mrr: 0.5}\nfloors: {}"},
            "rules",
            "rules, floors is stated twice, the second time in line 2",
        ),
        ({"rules": {"flors": {}}}, "rules", "there is no key 'flors'"),
        ({"rules": "x" * 100_001}, "rules", "at most 100,000"),
        ({"rules": {"x" * 100_001: 1}}, "rules", "at most 100,000"),
        ({"rules": 7}, "rules", "Send a YAML text, or the same as an object."),
        ({}, "rules", "This field is required."),
        ({"rules": FLOOR, "baseline": 7}, "baseline", "Not a valid string."),
        ({"rules": FLOOR, "baseline": "other"}, "baseline", "has no current baseline 'other'; there is main."),
        ({"rules": RULES}, "baseline", "name one"),
        ({"rules": FLOOR, "run": 7}, "run", "has no run 7"),
        ({"rules": FLOOR, "run": 10**30}, "run", "has no run"),
        ({"rules": FLOOR, "run": True}, "run", 'or "all"'),
        ({"rules": FLOOR, "measure": "mrr"}, "measure", "Unknown key"),
    ],
)
def test_it_names_what_is_wrong_and_where(
    ask: Ask, benchmark_of_two: Benchmark, body: Any, field: str, told: str
) -> None:
    answer = ask(benchmark_of_two, body)
    assert answer.status_code == 400, answer.content
    error = answer.json()
    assert set(error) == {"detail", "code", "errors"}
    assert told in error["detail"]
    [(named, [sentence])] = error["errors"].items()
    assert named == field
    assert error["detail"] in (sentence, f"{field}: {sentence}")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{", 400, "malformed"),
        ("[]", 400, "invalid"),
        ("", 400, "invalid"),
        ('{"rules": "a", "rules": "b"}', 400, "malformed"),
        ("[" * 100_000, 400, "malformed"),
        (b"\xff", 400, "malformed"),
        ('"' + "x" * 2_700_000 + '"', 413, "too_large"),
    ],
)
def test_it_refuses_a_body_that_is_no_request(
    ask: Ask, benchmark_of_two: Benchmark, body: Any, status: int, code: str
) -> None:
    answer = ask(benchmark_of_two, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_what_rest_framework_refuses_has_the_same_shape(ask: Ask, client: Client, benchmark_of_two: Benchmark) -> None:
    ask(benchmark_of_two, {"rules": FLOOR})
    for answer, status in (
        (client.get(address(benchmark_of_two)), 405),
        (client.post(address(benchmark_of_two), "floors:", content_type="text/yaml"), 415),
    ):
        assert answer.status_code == status
        assert set(answer.json()) == {"detail", "code"}


def test_a_state_that_forbids_the_gate_is_a_conflict(ask: Ask, benchmark_of_two: Benchmark) -> None:
    run = benchmark_of_two.runs.get(run_order=2)
    benchmark_of_two.runs.update(status=Run.Status.CANCELLED)
    for subject in (benchmark_of_two, run):
        answer = ask(subject, {"rules": FLOOR})
        assert (answer.status_code, answer.json()["code"]) == (409, "gate")


def test_what_others_own_is_refused_and_not_named(
    ask: Ask,
    benchmark_of_two: Benchmark,
    make_staff: MakeStaff,  # noqa: F811
) -> None:
    grace = make_staff("grace")
    secret = search(benchmark_of_two.mapping, GOOD, name="secret", owner=grace)
    baseline = pinned(secret.runs.get(), name="hidden")
    for subject in (secret, secret.runs.get()):
        answer = ask(subject, {"rules": FLOOR})
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
    for named in ("hidden", str(baseline.pk)):
        answer = ask(benchmark_of_two, {"rules": RULES, "baseline": named})
        assert answer.status_code == 400
        assert "there is main." in answer.json()["detail"]


def test_it_answers_staff_who_may_view_and_nobody_else(
    client: Client,
    benchmark_of_two: Benchmark,
    make_staff: MakeStaff,  # noqa: F811
) -> None:
    visitor = User.objects.create_user("visitor")
    for user in (None, visitor, make_staff("idle", may=())):
        if user:
            client.force_login(user)
        for subject in (benchmark_of_two, benchmark_of_two.runs.get(run_order=1)):
            answer = client.post(address(subject), {"rules": FLOOR}, content_type="application/json")
            assert answer.status_code == (403 if user else 401)
            assert set(answer.json()) == {"detail", "code"}


def test_a_session_needs_its_csrf_token(ada: User, benchmark_of_two: Benchmark) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    client.get("/admin/password_change/")
    send = {"path": address(benchmark_of_two), "data": {"rules": FLOOR}, "content_type": "application/json"}
    refused = client.post(**send)
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    token = client.cookies["csrftoken"].value
    assert client.post(**send, headers={"X-CSRFToken": token}).status_code == 200
