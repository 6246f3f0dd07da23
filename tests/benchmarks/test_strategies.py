"""Benchmarks of strategies: what they find, count and lose (tests/retrieval/words.py)."""

import csv
from io import StringIO
from typing import Any

import pytest

from apps.operations.working import wait
from apps.records.models import QueryResult, StageList
from apps.results.exporters import strategy
from apps.results.exporters.results_json import load_query_outcomes
from apps.results.exporters.tables import write_csv, yield_run
from apps.results.exporting import export_to
from apps.results.templatetags.benchbench import page_of
from apps.results.triage.paths import build_paths
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.llms import asking
from apps.retrieval.search.approximate import ApproximateView
from apps.retrieval.strategies.lod import OFFERED
from benchbench.ir.records import ScoredList
from tests.benchmarks.word_experiment import QUESTIONS
from tests.created import build, run_benchmark
from tests.results.exported import rows_of
from tests.retrieval.arms import require_installed
from tests.retrieval.llm_server import MODEL, llm_server
from tests.retrieval.words import BAG

pytestmark = pytest.mark.django_db(transaction=True)


def matrix_of(index: str, **axes: Any) -> dict[str, Any]:
    return {"indexes": [index], "top_k_values": [3], "k_values_for_metrics": [1, 3], "primary_k": 3, **axes}


def test_an_experiment_compares_strategies_by_sections_and_calls(measured, tmp_path):
    results = export_to(measured, "strategy", tmp_path / "results")
    flat, lod = rows_of(results, "index_stats.csv")
    assert [(row["num_chunks"], row["num_vectors"]) for row in (flat, lod)] == [("6", "6"), ("6", "15")]
    searched = [row for row in rows_of(results, "search_results.csv") if row["top_k"] == "3"]
    calls = {row["strategy"]: (row["embed_calls"], row["llm_calls"]) for row in searched}
    assert calls == {"flat": ("1", "0"), "lod_embed": ("3", "0")}
    first = [row for row in searched if row["run"] == "1"]
    ranks = {(row["strategy"], row["query_id"]): (row["doc_rank"], row["section_rank"]) for row in first}
    assert ranks["flat", "q1"] == ranks["lod_embed", "q1"] == ranks["flat", "q3"] == ("1", "1")
    assert ranks["lod_embed", "q3"] == ("-1", "-1")
    summary = {row["strategy"]: row for row in rows_of(results, "summary.csv")}
    assert [summary[name]["total_embed_calls"] for name in ("flat", "lod_embed")] == ["6", "18"]
    assert [run.embed_calls for run in measured.runs.all()] == [6, 18]


def test_a_query_that_fell_back_says_so(measured, admin_client):
    run = measured.runs.get(index__strategy="lod_embed")
    fell_back, second = run.query_results.filter(repetition=1).order_by("query")[:2]
    StageList.objects.filter(pk=fell_back.stage_list_id).update(fallback_used=True, llm_calls=2, llm_cached=1)
    answers = load_query_outcomes(run, [fell_back.query_id, second.query_id])
    calls = ("embed_calls", "llm_calls", "llm_cached", "fallback_used")
    assert [tuple(getattr(answer, name) for name in calls) for answer in answers] == [(3, 2, 1, True), (3, 0, 0, False)]
    lines = list(csv.DictReader(StringIO("".join(write_csv(yield_run)(run, measured.dataset_version)))))
    assert [line["fallback_used"] for line in lines][:2] == ["True", "False"]
    page, unlike = (admin_client.get(page_of(result)).content.decode() for result in (fell_back, second))
    assert "chose none of the candidates" in page
    assert "2 answers, 1 cached" in page
    assert "chose none of the candidates" not in unlike


def test_documents_skipped_by_a_strategy_are_reported(measured):
    lod = QueryResult.objects.get(run__index__strategy="lod_embed", query__key="q3", repetition=1)
    document = measured.mapping.collection.documents.get(external_id="A")
    (lost,) = build_paths(lod, {document.pk: 1}, hits=[], limit=5).lost
    assert lost.sentence == "The strategy of the index did not select its document or its section."
    assert lost.remedy.startswith("Raise doc_top_k or section_top_k")


def test_shared_execution_finds_the_same(measured):
    (lod,) = measured.mapping.collection.indexes.filter(strategy="lod_embed")
    shared = run_benchmark(measured.mapping, name="shared", matrix=matrix_of(lod.name, dimensions=[None, 5]))
    isolated = rankings(measured.runs.get(index=lod))
    complete, truncated = shared.runs.order_by("run_order")
    assert (rankings(complete), complete.embed_calls) == (isolated, 9)
    assert (truncated.embed_calls, truncated.failed_queries) == (6, 1), "zeta alone has no direction in 5 dimensions"


def test_it_searches_through_a_store_as_in_memory(measured):
    arms = ["sqlite_vec:exact", "pgvector:exact", "faiss:hnsw(ef_search=1000)", "hnsw(ef_search=1000)"]
    require_installed(*arms)
    (lod,) = measured.mapping.collection.indexes.filter(strategy="lod_embed")
    through = run_benchmark(measured.mapping, name="through stores", matrix=matrix_of(lod.name, ann=arms))
    for run in through.runs.all():
        recalls = [share["mean"] for share in run.provenance["ann"]["recall"]]
        if run.config["ann"].endswith(":exact"):  # a graph, built at random, finds any of equally near chunks
            assert rankings(run) == rankings(measured.runs.get(index=lod)), run.label
            assert recalls == [1], run.provenance["ann"]
        assert recalls[0] > 0
        assert (run.embed_calls, run.timing["search_ms"] > 0) == (9, True)
        assert run.warnings == [], run.label
        assert "searched_exactly" not in run.provenance["ann"]["notes"] or run.config["ann"].startswith("faiss")


def test_a_model_is_asked_for_each_query(measured, settings, monkeypatch):
    monkeypatch.setattr(asking, "BACKOFF_SECONDS", 0)

    def answer(prompt: str) -> str | int:
        if "Question: gamma" in prompt:
            return 400
        return "nothing" if "Question: zeta" in prompt else "C" if "documents" in prompt else "sec_3"

    with llm_server() as server:
        settings.BENCHBENCH_LLM_SERVERS = [f"here=openai+{server.url}/v1"]
        server.answer = answer
        fields = {"strategy": "lod_llm", "llm": MODEL, "llm_parameters": {"cache": False}}
        wait(build_index(create_index(measured.mapping.collection, name="llm", encoder=BAG, **fields)))
        benchmark = run_benchmark(measured.mapping, name="asked", matrix=matrix_of("llm", top_k_values=[3, 4]))
    three, four = benchmark.runs.order_by("run_order")
    assert three.source_id != four.source_id, "a search at one depth is no part of one at another"
    assert (three.failed_queries, three.embed_calls, three.llm_calls) == (1, 2, 4)
    assert len(server.asked) == 2 * (2 + 2 + 1), "of each run: two queries answered, one that failed at once"
    results = {result.query.key: result for result in three.query_results.select_related("query")}
    assert (results["q1"].llm_calls, results["q1"].fallback_used, results["q1"].error) == (2, False, "")
    assert results["q2"].fallback_used
    assert {tuple(created["llms"]) for created in three.provenance["made_by"]} == {(f"here:{MODEL}",)}
    assert ("answered 400" in results["q3"].error, results["q3"].total_ms) == (True, None)
    table = "".join(strategy.build_files(benchmark, benchmark.dataset_version)["search_results.csv"])
    rows = csv.DictReader(StringIO(table))
    counts = {(row["query_id"], row["llm_calls"], row["search_time_ms"] == "") for row in rows}
    assert counts == {("q1", "2", False), ("q2", "2", False), ("q3", "", True)}
    assert [warning for warning in three.warnings if "1 query the language model chose none of its options" in warning]
    (stops,) = build_paths(results["q1"], {}, hits=results["q1"].document_ids, limit=1).stops.values()
    assert (stops[0].stage, stops[0].rank) == ("by language model", 1)


def test_language_model_strategy_searches_through_stores(measured, server):
    arms = ["exact", "sqlite_vec:exact", "pgvector:exact", "faiss:hnsw(ef_search=1000)", "hnsw(ef_search=1000)"]
    require_installed(*arms)
    server.answer = lambda prompt: "B, C" if "documents" in prompt else "nothing"
    build(create_index(measured.mapping.collection, name="llm", encoder=BAG, strategy="lod_llm", llm=MODEL))
    benchmark = run_benchmark(measured.mapping, name="asked", matrix=matrix_of("llm", ann=arms))
    exact, *through = benchmark.runs.order_by("run_order")
    assert len({run.source_id for run in (exact, *through)}) == len(arms)
    assert len(server.asked) == 2 * len(QUESTIONS), "counterparts and other arms ask nothing new"
    for run in through:
        assert (run.status, run.failed_queries, run.warnings) == ("completed", 0, exact.warnings), run.error_message
        assert (run.embed_calls, run.llm_calls, run.timing["search_ms"] > 0) == (3, 6, True)
        assert run.provenance["ann"]["ndcg"]["cost"] == 0
        if run.config["ann"].endswith(":exact"):  # of equally near chunks a graph finds any
            assert rankings(run) == rankings(exact), run.label


def test_no_measured_query_is_answered_by_the_warm_up(measured, server):
    server.answer = lambda prompt: "nothing"
    build(create_index(measured.mapping.collection, name="llm", encoder=BAG, strategy="lod_llm", llm=MODEL))
    fields = {"matrix": matrix_of("llm"), "execution": "isolated"}
    benchmark = run_benchmark(measured.mapping, name="asked", **fields)
    results = QueryResult.objects.filter(run__benchmark=benchmark)
    assert set(results.values_list("llm_calls", "llm_cached")) == {(2, 0)}
    count = len(server.asked)
    assert count == 2 * len(QUESTIONS) + 2
    results = QueryResult.objects.filter(run__benchmark=run_benchmark(measured.mapping, name="again", **fields))
    assert set(results.values_list("llm_calls", "llm_cached")) == {(2, 2)}, "a repeat is free"
    assert len(server.asked) == count, "a repeat is free"


def test_chunks_missed_by_a_store_are_reported(measured, server, monkeypatch):
    require_installed("sqlite_vec:exact")
    monkeypatch.setattr(ApproximateView, "find_nearest", finds_no_chunk(ApproximateView.find_nearest))
    server.answer = lambda prompt: "nothing"
    build(create_index(measured.mapping.collection, name="llm", encoder=BAG, strategy="lod_llm", llm=MODEL))
    matrix = matrix_of("llm", ann=["sqlite_vec:exact"])
    (run,) = run_benchmark(measured.mapping, name="asked", matrix=matrix).runs.all()
    facts = run.provenance["ann"]
    assert [share["mean"] for share in facts["recall"]] == [0]
    assert facts["ndcg"]["cost"] > 0
    assert [warning for warning in run.warnings if "compares all chunks but found others than exact search" in warning]


def finds_no_chunk(nearest: Any) -> Any:
    """A search that finds documents and sections as `find_nearest` does, and no chunk below them."""

    def search(self: ApproximateView, queries: Any, depth: int, *, mask: Any = None) -> list[ScoredList]:
        result = nearest(self, queries, depth, mask=mask)
        return result if depth == OFFERED else [ScoredList.empty()] * len(result)

    return search


def rankings(run: Any) -> list[Any]:
    rows = run.query_results.filter(repetition=1).order_by("query_id")
    return list(rows.values_list("query__key", "document_ids", "chunk_ids", "scores"))


def test_a_chunk_that_a_summary_brought_says_so(measured, server):
    server.answer = lambda prompt: "beta beta beta delta"
    build(create_index(measured.mapping.collection, name="tree", encoder=BAG, strategy="raptor", llm=MODEL))
    benchmark = run_benchmark(measured.mapping, name="tree", matrix=matrix_of("tree", top_k_values=[3, 6]))
    assert len(server.asked) == 1, "it is asked while the tree grows, and not by searches"
    three, six = benchmark.runs.order_by("run_order")
    assert three.source_id == six.source_id
    assert [(run.embed_calls, run.llm_calls, run.failed_queries) for run in (three, six)] == [(3, 0, 0)] * 2
    beta, zeta = (three.query_results.select_related("query").get(query__key=key) for key in ("q1", "q2"))
    through = build_paths(beta, {}, hits=beta.document_ids, limit=1).stops
    assert {stops[0].note for stops in through.values()} == {"found through summary “beta beta beta delta”"}
    alone = build_paths(zeta, {}, hits=zeta.document_ids[:1], limit=1).stops
    assert [stops[0].note for stops in alone.values()] == [""]
