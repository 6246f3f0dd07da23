"""Benchmarks with approximate arms, full text and weighted fusion, through the real queue machinery."""

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.urls import reverse

from apps.execution.launching import launch, retry
from apps.execution.progress import build_event
from apps.execution.running.finishing import load_notes
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, Evaluation, Run, StageList
from apps.results.exporters.documents import render_text
from apps.results.exporters.results_json import build_results
from apps.retrieval.models import Index
from apps.retrieval.search.ann_indexes import find_ann_index
from benchbench.ir.planning.matrix import MatrixError
from tests.benchmarks.approximated import NARROW, WIDE, benchmark_of, run_matrix, run_of, work_one
from tests.benchmarks.figures import run_key
from tests.commands import json_of
from tests.created import list_warnings
from tests.site import BENCHMARK_FORM


class TestAnApproximateRun:
    def run(self, library: Mapping, **options: object) -> Benchmark:
        benchmark = run_matrix(library, search_modes=["dense", "hybrid"], ann=["exact", WIDE, NARROW], **options)
        assert benchmark.status == "completed"
        return benchmark

    @pytest.mark.parametrize("execution", ["shared", "isolated"])
    def test_it_is_held_against_exact_search(self, library, execution):
        benchmark = self.run(library, execution=execution)
        for mode in ("dense", "hybrid"):
            exact, wide, narrow = (run_of(benchmark, ann, mode) for ann in ("exact", WIDE, NARROW))
            assert "ann" not in exact.provenance
            assert (list_warnings(exact), list_warnings(wide)) == ([], [])
            assert [one["mean"] for one in wide.provenance["ann"]["recall"]] == [1, 1]
            assert wide.provenance["ann"]["ndcg"]["cost"] == 0
            at_ten, at_depth = narrow.provenance["ann"]["recall"]
            assert (at_ten["k"], at_depth["k"], at_depth["queries"]) == (10, 20, 12)
            assert (at_depth["mean"], at_depth["worst"]) == (pytest.approx(2 / 20), 2 / 20)
            assert at_ten["mean"] == pytest.approx(2 / 10)
            assert at_depth["worst_query"].startswith("q")
            ndcg = narrow.provenance["ann"]["ndcg"]
            means = {run: Evaluation.objects.get(run=run).means["nDCG@10"] for run in (exact, narrow)}
            assert ndcg["approximate"] == pytest.approx(means[narrow], abs=1e-12)
            assert ndcg["exact"] == pytest.approx(means[exact], abs=1e-12)
            assert ndcg["cost"] > 0

    def test_exact_counterpart_is_cut_by_threshold_scores(self, library):
        reranked = {"use_reranker": [True], "score_thresholds": [0.9], "candidates": [30]}
        benchmark = run_matrix(library, search_modes=["dense"], ann=["exact", WIDE], **reranked)
        exact, wide = (run_of(benchmark, ann) for ann in ("exact", WIDE))
        hits = [len(ids) for ids in exact.query_results.values_list("document_ids", flat=True)]
        assert 0 < sum(hits) < 20 * len(hits), "the threshold cuts"
        mean = Evaluation.objects.get(run=exact).means["nDCG@10"]
        assert wide.provenance["ann"]["ndcg"]["exact"] == pytest.approx(mean, abs=1e-12)

    def test_settings_and_warnings_are_stored_and_reported(self, library):
        benchmark = self.run(library)
        (warning,) = [text for text in run_of(benchmark, NARROW).warnings if "ef_search" in text]
        assert warning == (
            "hnsw(ef_search=2) finds at most 2 chunks per query because of ef_search, but 20 are needed: raise "
            "ef_search to 20, or let it scan on (iterative=strict)."
        )

        facts = run_of(benchmark, WIDE).provenance["ann"]
        assert facts["settings"]["hnsw.ef_search"] == "1000"
        assert facts["index_used"]
        assert f"Index Scan using {facts['index']}" in facts["plan"]
        assert facts["bytes"] > 0
        assert facts["build_seconds"] > 0
        assert find_ann_index(facts["index"]) is not None

        reported = {run.label: run.ann for run in build_results(benchmark).runs}
        assert reported[run_of(benchmark, WIDE).label]["recall"][0]["mean"] == 1
        answer = "recall@10 1.000 in 12 queries (worst 1.00), recall@20 1.000 in 12 queries (worst 1.00)"
        assert answer in render_text(benchmark)
        assert "finds at most 2 chunks" in render_text(benchmark)


class TestTruth:
    def test_exact_lists_are_made_even_without_exact_runs(self, library):
        benchmark = run_matrix(library, ann=[WIDE])
        keys = set(StageList.objects.filter(source__benchmark=benchmark).values_list("source__key", flat=True))
        assert keys == {"dense(exact)", f"dense({WIDE}, 20)"}
        run = benchmark.runs.get()
        assert run.provenance["ann"]["ndcg"]["cost"] == 0
        assert run.timing["search_ms"] > 0

    def test_repeated_benchmarks_and_both_executions_find_the_same(self, library):
        matrix = {"search_modes": ["dense", "hybrid"], "ann": [NARROW, "ivfflat(lists=4)"]}
        shared, again = benchmark_of(library, **matrix), benchmark_of(library, **matrix)
        isolated = benchmark_of(library, execution="isolated", runs_per_query=2, **matrix)
        for benchmark in (shared, again, isolated):
            wait(launch(benchmark))
        assert run_key(shared) == run_key(again)
        first = {key: value for key, value in run_key(isolated).items() if key[2] == 1}
        assert run_key(shared) == first

    def test_more_candidates_find_more(self, library):
        benchmark = run_matrix(library, ann=["hnsw(ef_search=1000, storage=binary)"], candidates=[None, 30])
        few, many = (run.provenance["ann"]["recall"] for run in benchmark.runs.order_by("run_order"))
        assert few[0]["mean"] <= many[0]["mean"] == 1


class TestPreparing:
    def test_runs_are_indexing_until_their_indexes_exist(self, library):
        benchmark = benchmark_of(library, ann=["exact", "hnsw"])
        operation = launch(benchmark)
        assert [batch.payload for batch in operation.batches.all()] == [{"prepare": True}]
        assert build_event(operation)["stage"] == "starting"
        seen = {}

        def look(*_: object) -> None:
            operation.refresh_from_db()
            seen.setdefault("stage", build_event(operation)["stage"])
            seen.setdefault("runs", [run.status for run in benchmark.runs.order_by("run_order")])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("apps.retrieval.search.pgvector.explain", lambda *_: look() or {"index_used": True})
            work_one(operation)
        assert seen == {"stage": "indexing", "runs": ["pending", "indexing"]}
        operation.refresh_from_db()
        assert operation.batches.count() > 1
        event = build_event(operation)
        assert (event["stage"], event["percent"]) == ("evaluating", 0)
        work_one(operation)
        assert {run.status for run in benchmark.runs.all()} == {"evaluating"}
        assert build_event(operation)["eta_seconds"] > 0
        wait(operation)

    def test_nothing_is_prepared_where_nothing_is_needed(self, library):
        assert not launch(benchmark_of(library)).batches.filter(payload__has_key="prepare").exists()

    def test_index_errors_fail_runs(self, library, monkeypatch, settings):
        def broken(*args: object) -> None:
            raise DatabaseError("No space left on device")

        settings.BENCHBENCH_MAX_ATTEMPTS = 1
        monkeypatch.setattr("apps.retrieval.search.ann_indexes.make_ann_index", broken)
        benchmark = run_matrix(library, ann=["exact", "hnsw"])
        exact, failed = benchmark.runs.order_by("run_order")
        assert (exact.status, failed.status) == ("completed", "failed")
        assert failed.error_message == "Its index could not be made: DatabaseError: No space left on device"
        assert run_matrix(library, ann=["hnsw"]).status == "failed"
        monkeypatch.undo()
        wait(retry(benchmark))
        failed.refresh_from_db()
        assert failed.status == "completed"
        assert failed.provenance["ann"]["index_used"]

    def test_dropped_ann_index_adds_a_run_warning(self, library):
        benchmark = benchmark_of(library, ann=["hnsw(ef_search=50)"])
        operation = launch(benchmark)
        work_one(operation)
        name = operation.batches.get(payload__prepare=True).result["prepared"]["dense(hnsw(ef_search=50), 20)"]["index"]
        with connection.cursor() as cursor:
            cursor.execute(f'DROP INDEX "{name}"')
        wait(operation)
        (warning,) = list_warnings(benchmark.runs.get())
        assert (
            "PostgreSQL compared every vector in 12 queries instead of using the index of hnsw(ef_search=50)" in warning
        )

    def test_benchmark_creation_rejects_too_many_dimensions(self, library):
        Index.objects.update(dimension=3072)
        with pytest.raises(MatrixError, match="ann: hnsw cannot index the 3,072 dimensions") as raised:
            benchmark_of(library, ann=["hnsw"])
        assert raised.value.field == "ann"


class TestInterfaces:
    MATRIX = ["--modes", "dense,hybrid", "--ann", "exact,hnsw(ef_search=2, storage=halfvec)", "--lexical", "fts"]

    def test_the_command_takes_every_axis(self, library):
        fused = ["--fusion", "rrf,weighted", "--weights", "0.7:0.3,1:3", "--top-k", "20"]
        report = json_of("run_benchmark", "library", *self.MATRIX, *fused, "--wait")
        runs = {run["label"]: run for run in report["runs"]}
        assert len(runs) == 2 + 2 * 3
        label = "hybrid · hnsw(ef_search=2, storage=halfvec) · fts · weighted 0.7 + 0.3 · top 20"
        assert runs[label]["status"] == "completed"
        assert runs[label]["ann"]["recall"][0]["mean"] == pytest.approx(0.2)
        assert runs["hybrid · fts · rrf 60 · top 20"]["ann"] is None

    def test_weights_that_are_no_pairs_are_refused(self, library):
        with pytest.raises(CommandError, match="is not a pair of numbers"):
            call_command("run_benchmark", "library", "--weights", "a:b")
        with pytest.raises(CommandError, match=r"weights: \[0.7\] is not two numbers"):
            call_command("run_benchmark", "library", "--weights", "0.7")

    def test_pages_show_the_cost_of_approximation(self, library, admin_client):
        benchmark = run_matrix(library, ann=["exact", NARROW])
        exact, narrow = benchmark.runs.order_by("run_order")
        page = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
        assert page.count("against exact search: recall@10 0.200 in 12 queries (worst 0.20), recall@20 0.100") == 1
        assert "because of ef_search, but 20 are needed" in page
        page = admin_client.get(reverse("admin:benchmarks_run_change", args=[narrow.pk])).content.decode()
        assert "recall@10 0.200 in 12 queries (worst 0.20)" in page
        page = admin_client.get(reverse("admin:benchmarks_run_change", args=[exact.pk])).content.decode()
        assert "recall@10" not in page

    def test_the_form_reads_settings_and_weights(self, library, admin_client):
        filled = BENCHMARK_FORM | {"mapping": library.pk, "search_modes": ["hybrid"], "top_k_values": "20"}
        filled |= {"lexical": "bm25, fts", "fusion": ["weighted"], "weights": "0.7:0.3, 1:1"}
        filled |= {"ann": "exact, hnsw(m=8, ef_search=100)", "score_thresholds": ""}
        admin_client.post(reverse("admin:benchmarks_benchmark_add"), filled)
        matrix = Benchmark.objects.get().matrix
        assert matrix["ann"] == ["exact", "hnsw(m=8, ef_search=100)"]
        assert matrix["weights"] == [[0.7, 0.3], [0.5, 0.5]]
        assert Benchmark.objects.get().total_runs == 8
        wrong = admin_client.post(reverse("admin:benchmarks_benchmark_add"), filled | {"ann": "hnsw(m=1)"})
        assert "m: 1 is not a whole number from 2 to 100." in wrong.content.decode()


def test_retried_query_is_noted_once(library):
    benchmark = run_matrix(library, search_modes=["dense", "sparse"], ann=[NARROW])
    run = run_of(benchmark, NARROW)
    noted = load_notes(benchmark).queries
    (answer,) = noted.values()
    assert len(answer["short"]) == benchmark.dataset_version.query_count
    lost = StageList.objects.filter(source=run.source).order_by("query").first()
    StageList.objects.filter(pk=lost.pk).update(error="It was slow.")
    Run.objects.filter(pk=run.pk).update(failed_queries=1)
    wait(retry(Benchmark.objects.get(pk=benchmark.pk)))
    assert benchmark.runs.get(pk=run.pk).failed_queries == 0
    noted = load_notes(benchmark).queries
    assert noted == dict.fromkeys(noted, answer)
