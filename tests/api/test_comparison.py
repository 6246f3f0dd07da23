"""Runs held against each other, and what one lost and where it is weak, over HTTP."""

from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.mappings.truth import hash_truth
from apps.operations.working import wait
from apps.records.measuring.evaluating import load_truth
from apps.records.models import Benchmark, Evaluation, Run
from apps.verdicts.comparing import compare_runs
from tests.api.addresses import UNKNOWN
from tests.api.callers import MOST_QUERIES, Callers, assert_refused
from tests.commands import json_of
from tests.created import create_benchmark
from tests.factories import add_version
from tests.library import make_library, short_batches  # noqa: F401 (a fixture)
from tests.results.compared import make_compared, make_queries, noisy

PATH = "/comparison"
VALUES = noisy([0.3, 0.5, 0.5], 40)


@pytest.fixture
def compared(callers: Callers) -> Benchmark:
    """Three runs, of which the first is the worst and the other two are not distinguishable."""
    mapping = make_queries(40, category=["billing"] * 35 + ["rare"] * 5)
    return make_compared(mapping, VALUES, name="nightly", owner=callers.owner.user)


def runs_of(benchmark: Benchmark) -> list[Run]:
    return list(benchmark.runs.order_by("run_order"))


def test_comparison_of_two_runs_matches_the_command(callers: Callers, compared: Benchmark) -> None:
    before, after, _ = runs_of(compared)
    facts = callers.reader.get(PATH, baseline=before.pk, run=after.pk).json()
    assert facts == json_of("compare", before.pk, after.pk)
    requests = {"baseline": before.pk, "run": after.pk, "margin": 0.01}
    assert callers.reader.get(PATH, **requests).json() == json_of("compare", before.pk, after.pk, "--margin", "0.01")
    [difference] = facts["differences"]
    assert (difference["run"], difference["compared_with"]) == (str(after.pk), str(before.pk))
    assert (facts["measure"], facts["queries"], facts["baseline"]) == ("ndcg@10", 40, str(before.pk))
    first, second = facts["measures"]["ap"]
    assert (first["run"], first["difference"], first["interval"]) == (str(before.pk), 0, [0, 0])
    assert (second["run"], second["difference"]) == (str(after.pk), pytest.approx(second["mean"] - first["mean"]))
    assert [(run["id"], run["standing"]) for run in facts["runs"]] == [
        (str(after.pk), "better"),
        (str(before.pk), "baseline"),
    ]


def test_default_version_is_the_newest_with_values(callers: Callers, compared: Benchmark) -> None:
    """As after closing a round, which measures the runs on the version that it made."""
    before, after, _ = runs_of(compared)
    newer = add_version(compared.dataset_version.dataset)
    Mapping.objects.update(dataset_version=newer)
    for run in (before, after):
        evaluation = run.evaluations.get()
        evaluation.pk, evaluation.dataset_version = None, newer
        evaluation.save()
    requests = {"baseline": before.pk, "run": after.pk}
    facts = callers.reader.get(PATH, **requests).json()
    assert facts["dataset_version"].endswith(" v2")
    assert facts == json_of("compare", before.pk, after.pk)
    assert callers.reader.get(PATH, **requests, version=1).json()["dataset_version"].endswith(" v1")


def test_without_a_baseline_every_pair_is_compared(callers: Callers, compared: Benchmark) -> None:
    runs = runs_of(compared)
    facts = callers.owner.get(PATH, run=[run.pk for run in runs]).json()
    statistics = compare_runs(runs).comparison
    assert (facts["baseline"], facts["is_tested"], len(facts["differences"])) == (None, True, 3)
    best = facts["runs"][0]
    assert (best["id"], best["standing"], best["mean"]) == (facts["reference"], "best", max(statistics.means))
    by_pair = {(one["run"], one["compared_with"]): one for one in facts["differences"]}
    worst = by_pair[str(runs[0].pk), facts["reference"]]
    assert worst["significant"]
    assert worst["simultaneous"][1] < 0
    assert worst["interval"][0] < worst["difference"] < worst["interval"][1] < 0


def test_descriptive_comparison_has_no_p_value(callers: Callers, compared: Benchmark) -> None:
    query = {"run": [run.pk for run in runs_of(compared)]}
    for requested in ({"measure": "mrr"}, {"measure": "RR"}, {"slice": "category: rare"}):
        facts = callers.owner.get(PATH, **query, **requested).json()
        assert (facts["is_tested"], facts["verdict"]) == (False, None)
        assert {one["p"] for one in facts["differences"]} == {None}
        assert {one["standing"] for one in facts["runs"]} == {None}
    assert (facts["slice"], facts["queries"]) == ("category: rare", 5)
    facts = callers.owner.get(PATH, **query, slice="category: billing", measure="ndcg@10", seed=7).json()
    assert (facts["is_tested"], facts["queries"], facts["seed"]) == (True, 35, 7)


@pytest.mark.parametrize(
    ("query", "status", "field", "message"),
    [
        ({"run": str(UNKNOWN)}, 404, "", f"The run {UNKNOWN} does not exist."),
        ({"run": ["first"]}, 400, "run", "takes 2 to 64 runs, not 1"),
        ({"run": ["first"], "baseline": "first"}, 400, "run", "takes 2 to 64 runs, not 1"),
        ({"run": ["first", "second"], "measure": "ERR@20"}, 400, "measure", 'no common measure "ERR@20"'),
        ({"run": ["first", "second"], "slice": "nowhere"}, 400, "slice", 'no slice "nowhere"'),
        ({"run": ["first", "second"], "version": "7"}, 400, "version", "has no version 7"),
        ({"run": ["first", "second"], "version": "2"}, 409, "", "Without values on questions v2"),
    ],
)
def test_invalid_query_is_rejected_with_a_reason(
    callers: Callers, compared: Benchmark, query: dict[str, Any], status: int, field: str, message: str
) -> None:
    add_version(compared.dataset_version.dataset)
    names = dict(zip(("first", "second"), (str(run.pk) for run in runs_of(compared)), strict=False))

    def labelled(value: Any) -> Any:
        return [labelled(one) for one in value] if isinstance(value, list) else names.get(value, value)

    answer = callers.owner.get(PATH, **{key: labelled(value) for key, value in query.items()})
    assert_refused(answer, status, message=message, field=field)


def test_incomparable_runs_return_a_conflict(callers: Callers, compared: Benchmark) -> None:
    second = make_compared(make_queries(40, name="others"), VALUES, name="other", owner=callers.owner.user)
    runs = [runs_of(one)[0].pk for one in (compared, second)]
    for path, query in ((PATH, {"run": runs}), (f"{PATH}/queries", {"run": runs[0], "baseline": runs[1]})):
        assert_refused(callers.owner.get(path, **query), 409, "incomparable", "They use different datasets")


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
        {f"q{index:04}": failed[index] - VALUES[0][index] for index in range(40) if index != 3}
    )
    assert [abs(row["difference"]) for row in rows] == sorted((abs(gap) for gap in gaps.values()), reverse=True)
    assert all(row["difference"] == row["value"] - row["baseline_value"] for row in rows)


def test_comparison_query_count_is_independent_of_size(callers: Callers, compared: Benchmark) -> None:
    truth = load_truth(compared, compared.dataset_version)
    Evaluation.objects.update(truth_hash=hash_truth(truth))  # by which slices are kept
    runs = [run.pk for run in runs_of(compared)]
    callers.owner.get(PATH, run=runs)
    counts = []
    for requested in (runs[:2], runs):
        with CaptureQueriesContext(connection) as statements:
            callers.owner.get(PATH, run=requested)
        counts.append(len(statements))
    assert counts[0] == counts[1] <= 10


def test_runs_of_others_are_refused(callers: Callers, compared: Benchmark) -> None:
    first, second, _ = runs_of(compared)
    for path in (PATH, f"{PATH}/queries"):
        statuses = [
            getattr(callers, person).get(path, run=second.pk, baseline=first.pk).status_code for person in callers.NAMES
        ]
        assert statuses == [401, 403, 403, 403, 200, 200, 200]
    mine = make_compared(compared.mapping, VALUES, name="mine", owner=callers.other.user)
    assert_refused(callers.other.get(PATH, run=runs_of(mine)[0].pk, baseline=first.pk), 403, "permission_denied")


MATRIX = {"search_modes": ["dense", "sparse"], "top_k_values": [5], "k_values_for_metrics": [5], "primary_k": 5}


def test_triage_lists_losses_of_a_run_and_their_causes(
    transactional_db: None, callers: Callers, statements: list[str]
) -> None:
    benchmark = create_benchmark(make_library(queries=8), name="Which mode?", matrix=MATRIX, owner=callers.owner.user)
    wait(launch(benchmark))
    run = benchmark.runs.get(config__search_mode="sparse")
    path = f"/runs/{run.pk}/triage"
    facts = callers.reader.get(path).json()
    counts = {cause["cause"]: (cause["documents"], cause["queries"]) for cause in facts["causes"]}
    assert facts["run_id"] == str(run.pk)
    assert (facts["dataset_version"], facts["k"], facts["queries"]) == (1, 5, 8)
    assert (facts["untraced_queries"], facts["is_current"]) == (0, True)
    assert counts

    def listed(**query: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while True:
            page = callers.owner.get(f"{path}/documents", page=len(rows) // 7 + 1, per_page=7, **query).json()
            rows += page["documents"]
            if not page["documents"] or len(rows) == page["total"]:
                assert len(rows) == page["total"]
                return rows

    rows = listed()
    assert len(rows) == facts["lost_documents"] == sum(documents for documents, _ in counts.values())
    assert len({(row["query_id"], row["document_id"]) for row in rows}) == len(rows), "pages do not overlap"
    assert len({row["query_id"] for row in rows}) == facts["losing_queries"]
    for cause, (documents, queries) in counts.items():
        mine = listed(cause=cause)
        assert mine == [row for row in rows if row["cause"] == cause]
        assert (len(mine), len({row["query_id"] for row in mine})) == (documents, queries)
    assert all(row["sentence"] and row["remedy"] and row["reference"] == row["document_id"] for row in rows)
    cold, warm = set[int](), set[int]()
    for narrowed in ({}, {"version": 1}, {"cause": next(iter(counts))}):
        for per_page in (1, 100):
            cache.clear()
            for took in (cold, warm):
                statements.clear()
                callers.owner.get(f"{path}/documents", per_page=per_page, **narrowed)
                took.add(len(statements))
    assert (len(cold), len(warm)) == (1, 1), "as many whatever is asked for"
    assert max(warm) <= MOST_QUERIES
    assert max(cold) <= MOST_QUERIES + 2  # lists and the documents of their chunks


@pytest.fixture
def sliced(callers: Callers) -> Benchmark:
    """Two runs over 40 queries, of which those of billing are hard for the first."""
    values = noisy([0.6, 0.6], 40)
    values[0, :20] -= 0.4
    mapping = make_queries(40, category=["billing"] * 20 + ["search"] * 20)
    return make_compared(mapping, values, owner=callers.owner.user)


def test_run_lists_its_slices_and_marks_weak_ones(callers: Callers, sliced: Benchmark) -> None:
    run = sliced.runs.get(run_order=1)
    facts = callers.reader.get(f"/runs/{run.pk}/slices", version=1).json()
    assert (facts["run_id"], facts["dataset_version"], facts["primary"]) == (str(run.pk), 1, "ndcg@10")
    families = {f"{family}@{k}" for family in ("ndcg", "precision", "recall") for k in (5, 10)}
    assert set(facts["metrics_flat"]) == families | {"mrr", "ap"}
    slices = {one["name"]: one for one in facts["slices"]}
    billing, search = slices["category: billing"], slices["category: search"]
    assert [billing[key] for key in ("partition", "label", "queries")] == ["category", "billing", 20]
    assert billing["weak"]["mean"] == pytest.approx(billing["metrics_flat"]["ndcg@10"])
    assert billing["weak"]["other_mean"] == pytest.approx(search["metrics_flat"]["ndcg@10"])
    assert billing["weak"]["p"] < 0.05
    assert search["weak"] is None


def refused(callers: Callers, run: Run, **query: Any) -> list[tuple[int, str]]:
    answers = [
        callers.owner.get(f"/runs/{run.pk}/{name}", **query) for name in ("triage", "triage/documents", "slices")
    ]
    return [(answer.status_code, answer.json().get("code", "")) for answer in answers]


def test_run_without_values_returns_a_conflict(callers: Callers, sliced: Benchmark) -> None:
    sliced.runs.filter(run_order=1).update(status="failed", error_message="The encoder is gone.")
    assert refused(callers, sliced.runs.get(run_order=1)) == [(409, "unmeasured")] * 3
    made_elsewhere = sliced.runs.get(run_order=2)
    sliced.runs.filter(run_order=2).update(is_external=True)
    assert refused(callers, made_elsewhere)[:2] == [(409, "untraced")] * 2


def test_a_wrong_query_of_a_triage_is_named(callers: Callers, sliced: Benchmark) -> None:
    run = sliced.runs.get(run_order=1)
    assert refused(callers, run, version="7") == [(400, "no_values")] * 3
    assert_refused(callers.owner.get(f"/runs/{run.pk}/triage/documents", cause="bad luck"), 400, field="cause")
