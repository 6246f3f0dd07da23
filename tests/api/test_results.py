"""What came of a benchmark over HTTP: every field, by rankings whose measures one can predict."""

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.mappings.models import Mapping
from apps.operations.models import Status
from apps.records.models import Benchmark, Run
from apps.results.triage.queries import load_evaluation
from apps.results.triage.sections import load_content, load_section_means
from apps.verdicts.coverage import load_coverage
from benchbench import SOFTWARE
from benchbench.ir.measures import Measure
from tests.api.callers import Callers, assert_refused, checked_json
from tests.benchmarks.gated import GOOD, POOR, make_gated, search
from tests.commands import json_of
from tests.factories import add_version, make_benchmark, make_collection, make_dataset, make_mapping
from tests.library import short_batches  # noqa: F401 (a fixture)
from tests.rankings import change_rankings, delete_rankings
from tests.results.sectioned import make_sectioned, searching


@pytest.fixture
def nightly(callers: Callers) -> Benchmark:
    """Two runs of 21 queries: the second is worse, and its last query of 20 with an answer failed."""
    hits = search(make_gated(), GOOD, [*POOR[:19], 0], owner=callers.owner.user)
    hits.runs.filter(run_order=2).update(failed_queries=1)
    return hits


def path(benchmark: Benchmark, run: Run | None = None, *, tail: str = "") -> str:
    return f"/benchmarks/{benchmark.pk}" + (f"/runs/{run.pk}" if run else "") + tail


def test_results_contain_every_documented_field(callers: Callers, nightly: Benchmark) -> None:
    Run.objects.create(benchmark=nightly, run_order=3, label="late", config_hash="f" * 16, config={"top_k": 1})
    ended = timezone.now()
    Benchmark.objects.update(started_at=ended - timedelta(seconds=90), completed_at=ended)
    facts = checked_json(callers.owner.get(path(nightly, tail="/results")), 200)
    first, second, pending = facts.pop("runs")
    assert facts == {
        "benchmark_id": str(nightly.pk),
        "name": nightly.name,
        "status": "completed",
        "software": SOFTWARE,
        "dataset_version": 1,
        "duration_ms": 90_000,
        "primary_k": 10,
        "weighting": "equal",
        "exclude_self": False,
        "identical_texts": "different",
        "k_values_for_metrics": [5, 10],
        "summary": {
            "total_runs": 3,
            "completed_runs": 2,
            "failed_runs": 0,
            "best_run": first["id"],
            "best_primary_metric": first["metrics"]["ndcg"]["10"],
        },
        "total_runs": 3,
        "round_verdict": None,
        "caveat": None,
    }
    assert second["failed_queries"] == 1
    assert (pending["status"], pending["metrics_flat"]) == ("pending", {})
    assert pending["metrics"] == {"mrr": None, "ap": None, "precision": {}, "recall": {}, "ndcg": {}}


def test_results_contain_every_field_of_a_run(callers: Callers, nightly: Benchmark) -> None:
    first = callers.owner.get(path(nightly, tail="/results")).json()["runs"][0]
    assert first | {"metrics": 0, "metrics_flat": 0} == {
        "id": str(nightly.runs.get(run_order=1).pk),
        "run_order": 1,
        "config_hash": f"{1:016}",
        "config": {"search_mode": "dense", "top_k": 10, "use_reranker": False, "rrf_k": 60, "score_threshold": None},
        "status": "completed",
        "error_message": None,
        "metrics": 0,
        "metrics_flat": 0,
        "weighting": "equal",
        "timing": {
            "indexing_ms": None,
            "evaluation_ms": 262,  # 21 searches of 12.5 ms; the benchmark's clock says another time
            "total_ms": 262,
            "per_query": {"total_ms": 12.5, "samples": 21, "execution": "shared"},
        },
        "label": "dense · top 10",
        "failed_queries": 0,
        "unranked": None,
        "warnings": [],
        "index": None,
        "ann": None,
    }
    assert first["metrics"]["mrr"] == first["metrics_flat"]["mrr"] == pytest.approx(15 / 21)
    assert first["metrics"]["precision"] == {
        "5": first["metrics_flat"]["precision@5"],
        "10": first["metrics_flat"]["precision@10"],
    }
    assert first["metrics_flat"]["precision@10"] == pytest.approx(2 / 21)


def test_a_command_prints_the_same_results(callers: Callers, nightly: Benchmark) -> None:
    printed = json_of("rescore", nightly.pk)
    assert (printed.pop("unsearched_queries"), printed.pop("dropped_queries")) == (0, 0)
    assert printed == callers.owner.get(path(nightly, tail="/results")).json()


@pytest.mark.parametrize("status", Status.values)
def test_results_are_available_at_any_status(callers: Callers, nightly: Benchmark, status: str) -> None:
    Benchmark.objects.update(status=status)
    assert callers.owner.get(path(nightly, tail="/results")).status_code == 200


def test_run_detail_extends_its_results_entry(callers: Callers, nightly: Benchmark) -> None:
    run = nightly.runs.get(run_order=2)
    Run.objects.filter(pk=run.pk).update(provenance={"seed": 42})
    facts = callers.owner.get(path(nightly, run)).json()
    in_results = callers.owner.get(path(nightly, tail="/results")).json()["runs"][1]
    assert {name: facts[name] for name in in_results} == in_results
    assert {name: facts[name] for name in facts if name not in in_results} == {
        "benchmark_id": str(nightly.pk),
        "is_external": False,
        "index_id": None,
        "embed_calls": 0,
        "llm_calls": 0,
        "started_at": None,
        "completed_at": None,
        "provenance": {"seed": 42},
    }


def test_query_list_shows_the_answers_of_a_run(callers: Callers, nightly: Benchmark) -> None:
    run = nightly.runs.get(run_order=2)
    change_rankings(run.query_results.all(), search_ms=3.5, rerank_ms=1.25, total_ms=6.0)
    facts = checked_json(callers.owner.get(path(nightly, run, tail="/queries"), per_page=100), 200)
    rows = {row["query_key"]: row for row in facts.pop("results")}
    assert facts == {"run_id": str(run.pk), "primary_k": 10, "total": 21, "page": 1, "per_page": 100}
    third = rows["q04"]
    assert (third["query_text"], third["retrieved_doc_ids"][:3]) == ("What is q04?", ["d21", "d22", "d4"])
    assert third["precision_at_k"] == third["metrics_flat"]["precision@10"] == 0.1
    assert (third["recall_at_k"], third["reciprocal_rank"], third["ndcg_at_k"]) == (1, pytest.approx(1 / 3), 0.5)
    assert (third["search_time_ms"], third["rerank_time_ms"], third["total_time_ms"]) == (3.5, 1.25, 6.0)
    assert third["execution"] == "shared"
    failed = rows["q20"]
    assert (failed["error"], failed["retrieved_doc_ids"]) == ("The index was away.", [])
    values = ("precision_at_k", "recall_at_k", "reciprocal_rank", "ndcg_at_k")
    assert [failed[name] for name in values] == [None] * 4
    second = callers.owner.get(path(nightly, run, tail="/queries"), page=2, per_page=20).json()
    assert (len(second["results"]), second["total"]) == (1, 21)


def test_a_run_that_goes_on_has_answers_without_values(callers: Callers, nightly: Benchmark) -> None:
    run = nightly.runs.get(run_order=1)
    delete_rankings(run.query_results.exclude(query__key="q01"))
    Run.objects.filter(pk=run.pk).update(status=Run.Status.EVALUATING)
    facts = callers.owner.get(path(nightly, run, tail="/queries")).json()
    (row,) = facts["results"]
    assert (facts["total"], row["query_key"], row["metrics_flat"], row["ndcg_at_k"]) == (1, "q01", {}, None)


def test_values_are_those_of_the_requested_version(callers: Callers, nightly: Benchmark) -> None:
    second = add_version(nightly.dataset_version.dataset)
    assert_refused(callers.owner.get(path(nightly, tail="/results"), version=2), 400, field="version")
    assert_refused(callers.owner.post(path(nightly, tail="/rescore"), {"version": 2}), 409, "mapping_not_resolved")
    Mapping.objects.update(dataset_version=second)
    assert checked_json(callers.owner.post(path(nightly, tail="/rescore"), {"version": 2}), 200) | {"message": ""} == {
        "benchmark_id": str(nightly.pk),
        "dataset_version": 2,
        "measured_runs": 2,
        "unsearched_queries": 0,
        "dropped_queries": 0,
        "operation_uuid": None,
        "message": "",
    }
    run = nightly.runs.get(run_order=1)
    assert callers.owner.get(path(nightly, tail="/results"), version=2).json()["dataset_version"] == 2
    assert callers.owner.get(path(nightly, run), version=2).status_code == 200
    assert callers.owner.get(path(nightly, run, tail="/queries"), version=2).json()["results"][0]["ndcg_at_k"] == 1


@pytest.mark.parametrize("tail", ["/results", ""])
def test_result_query_count_is_independent_of_size(callers: Callers, nightly: Benchmark, tail: str) -> None:
    address = path(nightly, None if tail else nightly.runs.get(run_order=1), tail=tail)
    callers.owner.get(address)
    with CaptureQueriesContext(connection) as few:
        callers.owner.get(address)
    for order in range(3, 6):
        Run.objects.create(benchmark=nightly, run_order=order, label="more", config_hash=f"{order:016}")
    with CaptureQueriesContext(connection) as many:
        assert callers.owner.get(address).status_code == 200
    assert len(few) == len(many) <= 10


def test_run_shows_its_coverage_sections_and_content(transactional_db: None, callers: Callers, tmp_path: Path) -> None:
    benchmark = make_sectioned(tmp_path)
    run = searching(benchmark)
    evaluation = load_evaluation(run)
    assert evaluation is not None
    answers = {
        name: callers.reader.get(f"/runs/{run.pk}/{name}").json() for name in ("coverage", "sections", "content")
    }
    for facts in answers.values():
        assert (facts.pop("run_id"), facts.pop("dataset_version")) == (str(run.pk), 1)
    assert answers["coverage"] == {
        "weighting": "equal",
        "measures": [asdict(row) | {"name": Measure.parse(row.name).wire} for row in load_coverage(evaluation)],
    }
    assert answers["sections"] == asdict(load_section_means(evaluation))
    content = load_content(evaluation)
    assert answers["content"] == {
        "k": content.k,
        "queries": len(content.queries),
        "unanswered": content.unanswered,
        "means": [asdict(mean) for mean in content.means],
    }


def test_run_without_section_judgments_shows_no_section_values(callers: Callers) -> None:
    mapping = make_mapping(make_dataset({"q": [({"document_id": "d1"}, 1)]}), make_collection())
    benchmark = make_benchmark(mapping, [0.5, None], owner=callers.owner.user)
    run, failed = benchmark.runs.order_by("run_order")
    sections = callers.owner.get(f"/runs/{run.pk}/sections").json()
    assert (sections["judgments"], sections["rows"], sections["doc_mrr"]) == (0, [], None)
    for name in ("coverage", "sections", "content"):
        assert_refused(callers.owner.get(f"/runs/{failed.pk}/{name}"), 409, "unmeasured")
        assert callers.owner.get(f"/runs/{run.pk}/{name}", version=7).status_code == 400
