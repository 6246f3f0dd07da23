"""What a run lost and where it is weak, over HTTP: what the pages count is what the API tells."""

from typing import Any

import pytest
from django.core.cache import cache

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark, Run
from apps.operations.working import wait
from tests.api.callers import Callers
from tests.api.test_addresses import MOST_QUERIES
from tests.benchmarks.conftest import make_library, short_batches  # noqa: F401 (a fixture)
from tests.created import create_benchmark
from tests.results.compared import make_compared, make_queries, noisy

MATRIX = {"search_modes": ["dense", "sparse"], "top_k_values": [5], "k_values_for_metrics": [5], "primary_k": 5}


def test_a_run_tells_what_it_lost_and_why(transactional_db: None, callers: Callers, statements: list[str]) -> None:
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


def test_a_run_tells_its_slices_and_which_are_weak(callers: Callers, sliced: Benchmark) -> None:
    run = sliced.runs.get(run_order=1)
    facts = callers.reader.get(f"/runs/{run.pk}/slices", version=1).json()
    assert (facts["run_id"], facts["dataset_version"], facts["primary"]) == (str(run.pk), 1, "ndcg@10")
    families = {f"{family}@{k}" for family in ("ndcg", "precision", "recall") for k in (5, 10)}
    assert set(facts["metrics_flat"]) == families | {"mrr", "ap"}
    slices = {one["name"]: one for one in facts["slices"]}
    billing, search = slices["category: billing"], slices["category: search"]
    assert [billing[key] for key in ("partition", "label", "queries")] == ["category", "billing", 20]
    assert billing["weak"]["mean"] == pytest.approx(billing["metrics_flat"]["ndcg@10"])
    assert billing["weak"]["others"] == pytest.approx(search["metrics_flat"]["ndcg@10"])
    assert billing["weak"]["p"] < 0.05
    assert search["weak"] is None


def refused(callers: Callers, run: Run, **query: Any) -> list[tuple[int, str]]:
    answers = [
        callers.owner.get(f"/runs/{run.pk}/{name}", **query) for name in ("triage", "triage/documents", "slices")
    ]
    return [(answer.status_code, answer.json().get("code", "")) for answer in answers]


def test_what_has_no_values_is_a_conflict(callers: Callers, sliced: Benchmark) -> None:
    sliced.runs.filter(run_order=1).update(status="failed", error_message="The encoder is gone.")
    assert refused(callers, sliced.runs.get(run_order=1)) == [(409, "unmeasured")] * 3
    made_elsewhere = sliced.runs.get(run_order=2)
    sliced.runs.filter(run_order=2).update(is_external=True)
    assert refused(callers, made_elsewhere)[:2] == [(409, "untraced")] * 2


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ({"version": "7"}, ["no_values"] * 3),
        ({"version": "0"}, ["invalid"] * 3),
        ({"versions": "1"}, ["invalid"] * 3),
    ],
)
def test_it_names_what_is_wrong(callers: Callers, sliced: Benchmark, query: dict[str, str], codes: list[str]) -> None:
    run = sliced.runs.get(run_order=1)
    assert refused(callers, run, **query) == [(400, code) for code in codes]
    answer = callers.owner.get(f"/runs/{run.pk}/triage/documents", cause="bad luck")
    assert (answer.status_code, set(answer.json()["errors"])) == (400, {"cause"})


@pytest.mark.parametrize("name", ["triage", "triage/documents", "slices"])
def test_each_may_see_what_is_theirs(callers: Callers, sliced: Benchmark, name: str) -> None:
    run = sliced.runs.get(run_order=1)
    statuses = [getattr(callers, who).get(f"/runs/{run.pk}/{name}").status_code for who in callers.NAMES]
    assert statuses == [401, 403, 403, 403, 200, 200, 200]
