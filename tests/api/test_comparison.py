"""Runs held against each other over HTTP: what the statistics say, what is refused, and query by query."""

from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.benchmarks.measuring.evaluating import truth_of
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.mappings.fingerprints import truth_hash
from apps.results.comparison.comparing import compare_runs
from apps.results.comparison_report import compare_pair
from tests.api.callers import Callers
from tests.factories import add_version
from tests.results.compared import make_compared, make_queries, noisy

PATH = "/comparison"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
VALUES = noisy([0.3, 0.5, 0.5], 40)


@pytest.fixture
def compared(callers: Callers) -> Benchmark:
    """Three runs, of which the first is the worst and the other two cannot be told apart."""
    mapping = make_queries(40, category=["billing"] * 35 + ["rare"] * 5)
    return make_compared(mapping, VALUES, name="nightly", owner=callers.owner.user)


def runs_of(benchmark: Benchmark) -> list[Run]:
    return list(benchmark.runs.order_by("run_order"))


def test_it_says_of_two_runs_what_the_command_says(callers: Callers, compared: Benchmark) -> None:
    before, after, _ = runs_of(compared)
    facts = callers.reader.get(PATH, baseline=before.pk, run=after.pk).json()
    told = compare_pair(before, after)
    for key in ("verdict", "about", "dataset_version", "warnings"):
        assert facts[key] == told[key]
    [difference] = facts["differences"]
    assert (difference["run"], difference["against"]) == (str(after.pk), str(before.pk))
    assert {key: difference[key] for key in difference if key in told["primary"]} == {
        key: told["primary"][key] for key in difference if key in told["primary"]
    }
    assert (facts["measure"], facts["queries"], facts["baseline"]) == ("ndcg@10", 40, str(before.pk))
    ap, one = told["measures"]["AP"], facts["measures"]["ap"]
    assert [row["run"] for row in one] == [str(before.pk), str(after.pk)]
    assert [row["mean"] for row in one] == pytest.approx([ap["before"], ap["after"]])
    assert (one[1]["difference"], one[1]["interval"]) == (ap["difference"], ap["interval"])
    assert (one[0]["difference"], one[0]["interval"]) == (0, [0, 0])
    assert [(run["id"], run["standing"]) for run in facts["runs"]] == [
        (str(after.pk), "better"),
        (str(before.pk), "baseline"),
    ]


def test_without_a_baseline_every_pair_is_compared(callers: Callers, compared: Benchmark) -> None:
    runs = runs_of(compared)
    facts = callers.owner.get(PATH, run=[run.pk for run in runs]).json()
    statistics = compare_runs(runs).comparison
    assert (facts["baseline"], facts["tested"], len(facts["differences"])) == (None, True, 3)
    best = facts["runs"][0]
    assert (best["id"], best["standing"], best["mean"]) == (facts["reference"], "best", max(statistics.means))
    by_pair = {(one["run"], one["against"]): one for one in facts["differences"]}
    worst = by_pair[str(runs[0].pk), facts["reference"]]
    assert worst["significant"]
    assert worst["simultaneous"][1] < 0
    assert worst["interval"][0] < worst["difference"] < worst["interval"][1] < 0


def test_what_is_only_described_has_no_p(callers: Callers, compared: Benchmark) -> None:
    query = {"run": [run.pk for run in runs_of(compared)]}
    for asked in ({"measure": "mrr"}, {"measure": "RR"}, {"slice": "category: rare"}):
        facts = callers.owner.get(PATH, **query, **asked).json()
        assert (facts["tested"], facts["verdict"]) == (False, None)
        assert {one["p"] for one in facts["differences"]} == {None}
        assert {one["standing"] for one in facts["runs"]} == {None}
    assert (facts["slice"], facts["queries"]) == ("category: rare", 5)
    facts = callers.owner.get(PATH, **query, slice="category: billing", measure="ndcg@10", seed=7).json()
    assert (facts["tested"], facts["queries"], facts["seed"]) == (True, 35, 7)


@pytest.mark.parametrize(
    ("query", "status", "field", "told"),
    [
        ({}, 400, "run", "This field is required."),
        ({"run": "x"}, 400, "run[0]", "Must be a valid UUID."),
        ({"run": UNKNOWN}, 404, "", "There is no run"),
        ({"run": ["first"]}, 400, "run", "takes 2 to 64 runs, not 1"),
        ({"run": ["first"], "baseline": "first"}, 400, "run", "takes 2 to 64 runs, not 1"),
        ({"run": ["first", "second"], "measure": "ERR@20"}, 400, "measure", 'no common measure "ERR@20"'),
        ({"run": ["first", "second"], "measure": "\0"}, 400, "measure", "Null characters are not allowed."),
        ({"run": ["first", "second"], "slice": "nowhere"}, 400, "slice", 'no slice "nowhere"'),
        ({"run": ["first", "second"], "version": "7"}, 400, "version", "has no version 7"),
        ({"run": ["first", "second"], "version": "9" * 18}, 400, "version", "less than or equal to"),
        ({"run": ["first", "second"], "seed": "-1"}, 400, "seed", "greater than or equal to"),
        ({"run": [UNKNOWN] * 65}, 400, "run", "no more than 64 elements."),
        ({"runs": ["first", "second"]}, 400, "runs", "Unknown key"),
        ({"run": ["first", "second"], "version": "2"}, 409, "", "Without values on questions v2"),
    ],
)
def test_it_says_what_is_wrong(
    callers: Callers, compared: Benchmark, query: dict[str, Any], status: int, field: str, told: str
) -> None:
    add_version(compared.dataset_version.dataset)
    names = dict(zip(("first", "second"), (str(run.pk) for run in runs_of(compared)), strict=False))

    def named(value: Any) -> Any:
        return [named(one) for one in value] if isinstance(value, list) else names.get(value, value)

    answer = callers.owner.get(PATH, **{key: named(value) for key, value in query.items()})
    assert answer.status_code == status, answer.content
    assert told in answer.json()["detail"]
    assert set(answer.json().get("errors", {})) == ({field} if field else set())


def test_what_cannot_be_compared_is_a_conflict(callers: Callers, compared: Benchmark) -> None:
    other = make_compared(make_queries(40, name="others"), VALUES, name="other", owner=callers.owner.user)
    runs = [runs_of(one)[0].pk for one in (compared, other)]
    for path, query in ((PATH, {"run": runs}), (f"{PATH}/queries", {"run": runs[0], "baseline": runs[1]})):
        answer = callers.owner.get(path, **query)
        assert (answer.status_code, answer.json()["code"]) == (409, "incomparable")
        assert "They answer different datasets" in answer.json()["detail"]


def test_queries_come_with_the_widest_gap_first(callers: Callers, compared: Benchmark) -> None:
    first, second, _ = runs_of(compared)
    failed = VALUES[1].copy()
    failed[3] = np.nan
    stored = [[None if np.isnan(one) else one for one in failed] for _ in compared.measures]
    Evaluation.objects.filter(run=second).update(values=stored, failed_queries=1, query_count=39)
    query = {"run": second.pk, "baseline": first.pk, "per_page": 25}
    pages = [callers.reader.get(f"{PATH}/queries", page=page, **query).json() for page in (1, 2)]
    rows = [row for page in pages for row in page["results"]]
    assert [page["total"] for page in pages] == [39, 39]
    assert len({row["query_id"] for row in rows}) == 39
    gaps = {row["query_key"]: row["difference"] for row in rows}
    assert gaps == pytest.approx(
        {f"q{place:04}": failed[place] - VALUES[0][place] for place in range(40) if place != 3}
    )
    assert [abs(row["difference"]) for row in rows] == sorted((abs(gap) for gap in gaps.values()), reverse=True)
    assert all(row["difference"] == row["value"] - row["baseline_value"] for row in rows)


def test_it_takes_few_queries_whatever_the_size(callers: Callers, compared: Benchmark) -> None:
    truth = truth_of(compared, compared.dataset_version)
    Evaluation.objects.update(truth_hash=truth_hash(truth))  # by which slices are kept
    runs = [run.pk for run in runs_of(compared)]
    callers.owner.get(PATH, run=runs)
    counts = []
    for asked in (runs[:2], runs):
        with CaptureQueriesContext(connection) as made:
            callers.owner.get(PATH, run=asked)
        counts.append(len(made))
    assert counts[0] == counts[1] <= 10
    with CaptureQueriesContext(connection) as made:
        callers.owner.get(f"{PATH}/queries", run=runs[0], baseline=runs[1])
    assert len(made) <= 10


def test_runs_of_others_are_refused(callers: Callers, compared: Benchmark) -> None:
    first, second, _ = runs_of(compared)
    for path in (PATH, f"{PATH}/queries"):
        statuses = [
            getattr(callers, who).get(path, run=second.pk, baseline=first.pk).status_code for who in callers.NAMES
        ]
        assert statuses == [401, 403, 403, 403, 200, 200, 200]
    mine = make_compared(compared.mapping, VALUES, name="mine", owner=callers.other.user)
    answer = callers.other.get(PATH, run=runs_of(mine)[0].pk, baseline=first.pk)
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
