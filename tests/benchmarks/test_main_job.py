"""From a matrix to measured runs, through the real queue machinery and the real index."""

import pytest

from apps.execution.launching import cancel, launch, retry
from apps.execution.progress import build_event, list_completions
from apps.mappings.models import Mapping
from apps.mappings.truth import read_truth
from apps.operations.working import OperationFailedError, wait
from apps.records.models import Benchmark, Evaluation, QueryResult, Run, StageList
from benchbench.errors import ConflictError
from tests.benchmarks.approximated import work_one
from tests.benchmarks.figures import run_key
from tests.created import create_benchmark, finish

ALL_MODES = {"search_modes": ["dense", "sparse", "hybrid"], "top_k_values": [20, 100], "score_thresholds": [None, 0.5]}


def benchmark_of(library: Mapping, matrix: dict = ALL_MODES, **options: object) -> Benchmark:
    return create_benchmark(library, name="b", matrix=matrix, **options)


def test_it_ranks_measures_and_stores_every_run(library):
    benchmark = finish(benchmark_of(library))
    assert {benchmark.status, *benchmark.runs.values_list("status", flat=True)} == {Run.Status.COMPLETED}
    assert QueryResult.objects.count() == 12 * 12
    assert (
        StageList.objects.count() == 4 * 12
    )  # a dense, a lexical and two fused lists: what runs return is part of one
    for run in benchmark.runs.all():
        evaluation = Evaluation.objects.get(run=run)
        assert evaluation.query_count == 12
        assert 0 < evaluation.means["nDCG@10"] <= 1
        assert run.provenance["index"]["fingerprint"] == run.index.fingerprint
        assert run.timing["total_ms"] > 0


def test_its_values_are_those_of_ir_measures(library):
    import ir_measures

    benchmark = finish(benchmark_of(library))
    grades = read_truth(library, benchmark.dataset_version).grades
    qrels = [ir_measures.Qrel(str(q), str(d), grade) for q, graded in grades.items() for d, grade in graded.items()]
    for run in benchmark.runs.all():
        rows = run.query_results.values_list("query_id", "document_ids")
        ranked = [ir_measures.ScoredDoc(str(q), str(d), -rank) for q, ids in rows for rank, d in enumerate(ids)]
        evaluation = Evaluation.objects.get(run=run)
        measures = {name: ir_measures.parse_measure(name) for name in evaluation.measures}
        expected = ir_measures.calc_aggregate(measures.values(), qrels, ranked)
        for name, measure in measures.items():
            assert evaluation.means[name] == pytest.approx(expected[measure], abs=1e-9), (run.label, name)


def test_isolated_execution_repeats_queries_and_times_each(library):
    benchmark = finish(benchmark_of(library, {"search_modes": ["hybrid"]}, execution="isolated", runs_per_query=3))
    results = QueryResult.objects.filter(run__benchmark=benchmark)
    assert results.count() == 3 * 12
    assert not results.filter(encode_ms__isnull=True).exists()
    timing = benchmark.runs.get().timing
    assert (timing["samples"], timing["consistency_score"]) == (36, 1.0)
    assert set(timing["percentiles"]) == {"encode_ms", "search_ms", "fuse_ms", "total_ms"}
    total = timing["percentiles"]["total_ms"]
    assert 0 < total["p50"] <= total["p95"]
    assert "p99" not in total  # 36 samples say nothing about it


def test_cancelled_benchmark_keeps_rows_hides_means_and_resumes(library):
    undisturbed, benchmark = benchmark_of(library), benchmark_of(library)
    wait(launch(undisturbed))
    work_one(launch(benchmark))
    cancel(benchmark)
    benchmark.refresh_from_db()
    stored = QueryResult.objects.filter(run__benchmark=benchmark).count()
    assert benchmark.status == "cancelled"
    assert {run.status for run in benchmark.runs.all()} == {Run.Status.CANCELLED}
    assert stored > 0
    assert not Evaluation.objects.filter(run__benchmark=benchmark).exists()
    with pytest.raises(ConflictError, match="only a running benchmark can be cancelled"):
        cancel(benchmark)

    resumed = launch(benchmark)
    assert sum(len(batch.payload["query_ids"]) for batch in resumed.batches.all()) == 12 - stored // 12
    wait(resumed)
    assert run_key(benchmark) == run_key(undisturbed)


def test_unloadable_model_fails_only_runs_using_it(library, tmp_path):
    matrix = {"search_modes": ["dense"], "use_reranker": [False, True], "rerankers": [str(tmp_path)]}
    benchmark = finish(benchmark_of(library, matrix))
    plain, reranked = benchmark.runs.order_by("run_order")
    assert (plain.status, reranked.status) == (Run.Status.COMPLETED, Run.Status.FAILED)
    assert f"The model '{tmp_path}' could not be loaded" in reranked.error_message
    assert reranked.query_results.exclude(error="").count() == 12
    benchmark.refresh_from_db()
    assert benchmark.status == "completed"
    assert retry(benchmark).parameters["run_ids"] == [str(reranked.pk)]


def test_query_timeout_is_an_error_instead_of_zero(library, settings):
    settings.BENCHBENCH_QUERY_TIMEOUT_MS = 0
    run = finish(benchmark_of(library, {"search_modes": ["sparse"]})).runs.get()
    assert run.status == Run.Status.FAILED
    assert "BENCHBENCH_QUERY_TIMEOUT_MS" in run.error_message
    assert Evaluation.objects.get(run=run).means["nDCG@10"] is None


def test_a_failed_operation_fails_its_runs(library, monkeypatch):
    def broken(*args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("apps.execution.running.execution.store_final_lists", broken)
    benchmark = benchmark_of(library, {"search_modes": ["sparse"]})
    with pytest.raises(OperationFailedError, match="No space left"):
        wait(launch(benchmark))
    benchmark.refresh_from_db()
    run = benchmark.runs.get()
    assert (benchmark.status, run.status) == ("failed", Run.Status.FAILED)
    assert "No space left" in run.error_message
    monkeypatch.undo()
    wait(retry(benchmark))
    run.refresh_from_db()
    assert run.status == Run.Status.COMPLETED


def test_event_reports_every_run_during_and_after_work(library):
    operation = launch(benchmark_of(library))
    before = build_event(operation)
    assert (before["stage"], before["queue_position"], before["completed_runs"]) == ("starting", 0, 0)
    work_one(operation)
    operation.refresh_from_db()
    during = build_event(operation)
    assert (during["stage"], during["queue_position"]) == ("evaluating", None)
    assert 0 < during["current_run"]["completed_queries"] < during["current_run"]["total_queries"] == 12
    assert during["current_run"]["run_order"] == 1
    assert 0 < during["runs"][0]["metrics_flat"]["ndcg@10"] <= 1
    assert during["eta_seconds"] > 0
    assert list_completions(operation, 0) == []
    wait(operation)
    operation.refresh_from_db()
    after = build_event(operation)
    answers = [after[key] for key in ("stage", "completed_runs", "current_run", "percent")]
    assert answers == ["completed", 12, None, 100]
    finished = list_completions(operation, 0)
    assert [order for order, _ in finished] == list(range(1, 13))
    assert finished[0][1]["last_completed_run"]["metrics"]["ndcg"]["10"] == pytest.approx(
        finished[0][1]["last_completed_run"]["metrics_flat"]["ndcg@10"]
    )
    assert [order for order, _ in list_completions(operation, 10)] == [11, 12]
