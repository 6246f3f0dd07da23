"""Runs that search for what a language model makes of a query."""

from collections.abc import Iterator
from typing import Any

import pytest

from apps.collections.records import DocumentRecord
from apps.datasets.records import QueryRecord
from apps.execution.defining.previewing import preview
from apps.execution.launching import retry
from apps.execution.running.pairs import PinnedRerankers
from apps.execution.running.stages import Stages
from apps.mappings.models import Mapping
from apps.operations.leasing import Stopped
from apps.operations.working import wait
from apps.records.circumstances import list_circumstances
from apps.records.models import QueryResult, Run
from apps.records.planning import plan_of
from apps.results.exporters.strategy import build_files
from apps.results.templatetags.benchbench import page_of
from apps.results.triage.paths import build_paths
from apps.retrieval.availability import UnavailableError
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.llms import asking
from apps.retrieval.models import LLMAnswer
from benchbench.process import reset_all
from tests.benchmarks.approximated import benchmark_of, run_matrix
from tests.library import ENCODER, import_all
from tests.pages import one_line
from tests.retrieval.llm_server import MODEL, LLMServer, llm_server

HYBRID_HYDE = ("hybrid", "hyde")  # a passage for vectors, and the words as asked
LLM = {"llms": [f"here:{MODEL}"]}


@pytest.fixture
def server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[LLMServer]:
    """A model that makes of a query for olives one for apples, or a passage on pears, or both as its variants."""
    monkeypatch.setattr(asking, "BACKOFF_SECONDS", 0)
    reset_all()

    def answer(prompt: str) -> str | int:
        if "Question: plum" in prompt:
            return 400
        return "Pear." if "passage" in prompt else "1. apple\n2. pear" if "different" in prompt else '"apple"'

    with llm_server() as created:
        settings.BENCHBENCH_LLM_SERVERS = [f"here=openai+{created.url}/v1"]
        created.answer = answer
        yield created


@pytest.fixture
def shelf(transactional_db: None) -> Mapping:
    documents = [DocumentRecord(name, title=name, text=name) for name in ("apple", "olive", "pear", "plum")]
    return import_all(documents, [QueryRecord("q1", "olive"), QueryRecord("q2", "plum")], name="k", encoder=ENCODER)


def first(run: Run) -> list[str]:
    """The documents that the run ranks first for olives: two, where it searches for two texts."""
    result = run.query_results.get(query__key="q1", repetition=1)
    documents = run.benchmark.mapping.collection.documents.in_bulk(result.document_ids)
    names = [documents[key].external_id for key in result.document_ids]
    way = run.config.get("query")
    is_two = way == "multi(2)" or (run.config["search_mode"], way) == HYBRID_HYDE
    return sorted(names[: 1 + is_two])


def test_each_mode_searches_for_the_generated_text(shelf, server):
    ways = ["as_asked", "rewrite", "hyde", "multi(2)"]
    matrix = {"search_modes": ["dense", "sparse", "hybrid"], "query": ways, **LLM}
    assert preview(shelf, matrix).distinct["rewrite"] == 3 * 2
    benchmark = run_matrix(shelf, **matrix)
    runs = {(run.config["search_mode"], run.config.get("query", "as_asked")): run for run in benchmark.runs.all()}
    assert {key: first(run) for key, run in runs.items()} == {
        ("dense", "as_asked"): ["olive"],
        ("dense", "rewrite"): ["apple"],
        ("dense", "hyde"): ["pear"],
        ("dense", "multi(2)"): ["apple", "pear"],
        ("sparse", "as_asked"): ["olive"],
        ("sparse", "rewrite"): ["apple"],
        ("sparse", "multi(2)"): ["apple", "pear"],
        ("hybrid", "as_asked"): ["olive"],
        ("hybrid", "rewrite"): ["apple"],
        ("hybrid", "hyde"): ["olive", "pear"],
        ("hybrid", "multi(2)"): ["apple", "pear"],
    }
    calls = {key: runs["dense", key].query_results.get(query__key="q1") for key in ways}
    created = {key: (result.embed_calls, result.llm_calls) for key, result in calls.items()}
    assert created == {"as_asked": (1, 0), "rewrite": (1, 1), "hyde": (1, 1), "multi(2)": (2, 1)}
    assert len(server.asked) == 6, "each way and query once, however many runs"


def test_the_cost_of_rewriting_is_in_the_times(shelf, server):
    for cached in (0, 1):
        benchmark = run_matrix(shelf, query=["rewrite"], **LLM)
        (run,) = benchmark.runs.all()
        result = run.query_results.get(query__key="q1")
        assert (result.llm_calls, result.llm_cached) == (1, cached)
        assert result.rewrite_ms == LLMAnswer.objects.get().ms
        assert result.total_ms == pytest.approx(
            sum(filter(None, [result.rewrite_ms, result.encode_ms, result.search_ms]))
        )
        assert run.timing["rewrite_ms"] == pytest.approx(result.rewrite_ms, abs=0.01)
        benchmark.delete()
    assert len(server.asked) == 3, "what failed is asked again"


def test_a_run_names_the_revision_that_rewrote(shelf, server, settings):
    settings.BENCHBENCH_LLM_SERVERS = [f"here=ollama+{server.url}"]
    runs = []
    for server.digest in ("d1", "d2"):
        reset_all()
        benchmark = run_matrix(shelf, query=["rewrite"], **LLM)
        runs.append(benchmark.runs.get())
        assert [created["llms"] for created in runs[-1].provenance["made_by"]] == [{f"here:{MODEL}": server.digest}]
    assert [difference.about for difference in list_circumstances(runs)] == ["model"]
    log = "".join(build_files(benchmark, benchmark.dataset_version)["run.log"])
    assert f"language model here:{MODEL}, revision d2\n" in log


def test_a_rewritten_query_is_searched_approximately_too(shelf, server):
    (run,) = run_matrix(shelf, query=["rewrite"], ann=["hnsw(ef_search=100)"], **LLM).runs.all()
    assert first(run) == ["apple"]
    assert {share["mean"] for share in run.provenance["ann"]["recall"]} == {1}, "the exact list is of the same text"


def test_strategy_prompt_uses_the_query_instead_of_the_passage(shelf, server):
    asks = {"strategy": "lod_llm", "llm": MODEL, "llm_parameters": {"cache": False}}
    wait(build_index(create_index(shelf.collection, name="asks", encoder=ENCODER, **asks)))
    benchmark = run_matrix(shelf, indexes=["asks"], query=["rewrite", "hyde"], **LLM)
    assert benchmark.runs.filter(failed_queries=1).count() == 2, "plum alone"
    prompts = [requested["messages"][0]["content"] for requested in server.asked]
    picking = [prompt for prompt in prompts if "documents" in prompt]
    requests = [any(f"Question: {text}" in prompt for prompt in picking) for text in ("apple", "olive", "Pear")]
    assert requests == [True, True, False]
    hyde = benchmark.runs.get(config__query="hyde").query_results.get(query__key="q1")
    assert (hyde.embed_calls, hyde.llm_calls, hyde.error) == (1, 3, "")


def test_an_error_is_charged_to_its_query(shelf, server):
    benchmark = run_matrix(shelf, query=["as_asked", "rewrite", "multi(3)"], **LLM)
    requested, rewritten, multiplied = benchmark.runs.order_by("run_order")
    assert (requested.failed_queries, rewritten.failed_queries, multiplied.status) == (0, 1, "failed")
    assert "answered 400" in rewritten.query_results.get(query__key="q2").error
    assert "returned 2 of the 3 texts" in multiplied.query_results.get(query__key="q1").error


@pytest.mark.parametrize("method", ["rewrite", "hyde", "multi(2)"])
def test_an_empty_answer_fails_its_query(shelf, server, method):
    well, server.answer = server.answer, lambda prompt: " \n" if "olive" in prompt else "1. apple\n2. pear"
    benchmark = run_matrix(shelf, query=[method], **LLM)
    failed = benchmark.runs.get().query_results.exclude(error="")
    assert [(row.query.key, "returned 0 of" in row.error) for row in failed] == [("q1", True)]
    server.answer = well
    wait(retry(benchmark))
    result = benchmark.runs.get().query_results.get(query__key="q1", repetition=1)
    assert (result.error, result.llm_cached) == ("", 0)
    assert len(server.asked) == 3, "plum's good answer was stored"


def test_stored_answer_that_became_invalid_is_replaced(shelf, server):
    for _ in "12":
        benchmark = run_matrix(shelf, query=["rewrite"], **LLM)
        assert not benchmark.runs.get().query_results.get(query__key="q1", repetition=1).error
        benchmark.delete()
        LLMAnswer.objects.update(text="")
    assert sum("olive" in requested["messages"][0]["content"] for requested in server.asked) == 2


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_may_refuse_some_queries(transactional_db, server, status):
    """Of 35 queries a server refuses 22 in a row, each three times."""
    documents = [DocumentRecord(name, title=name, text=name) for name in ("apple", "pear")]
    queries = [QueryRecord(f"q{number:02}", f"olive {number:02}") for number in range(35)]
    mapping = import_all(documents, queries, name="k", encoder=ENCODER)
    refused = {f"Question: olive {number:02}\n" for number in range(22)}
    server.answer = lambda prompt: status if any(question in prompt for question in refused) else "apple"
    (run,) = run_matrix(mapping, query=["rewrite"], **LLM).runs.all()
    results = run.query_results.filter(repetition=1)
    assert (run.status, run.failed_queries, results.filter(error="").count()) == ("completed", 22, 13)
    assert all(f"answered {status}" in error for error in results.exclude(error="").values_list("error", flat=True))


def test_it_looks_between_queries_whether_it_is_to_stop(shelf, server):
    run = benchmark_of(shelf, query=["rewrite"], **LLM).runs.get()

    def stop() -> None:
        if server.asked:
            raise Stopped

    queries = list(run.benchmark.dataset_version.queries.order_by("key"))
    stages = Stages(queries, {}, PinnedRerankers(run.benchmark), tolerant=True, on_part=stop)
    with pytest.raises(Stopped):
        stages.run(plan_of([run]))
    assert len(server.asked) == 1


def test_repetitions_ask_the_model_again(shelf, server):
    run_matrix(shelf, query=["rewrite"], execution="isolated", runs_per_query=3, **LLM)
    cached = QueryResult.objects.filter(query__key="q1").order_by("repetition").values_list("llm_cached", flat=True)
    assert list(cached) == [0, 0, 0], "what warmed up was not kept"


def test_pages_show_the_query_text_that_found_a_document(shelf, server, admin_client):
    run_matrix(shelf, search_modes=["hybrid"], query=["multi(2)"], **LLM)
    result = QueryResult.objects.get(query__key="q1")
    pear = shelf.collection.documents.get(external_id="pear")
    stops = build_paths(result, {}, hits=[pear.pk], limit=1).stops[pear.pk]
    assert [(stop.stage, stop.rank) for stop in stops if stop.stage.startswith("dense")][1] == ("dense, text 2", 1)
    stages = ["lexical, text 2", "dense variants fused", "lexical variants fused", "fused"]
    assert [stop.stage for stop in stops[3:]] == stages
    assert [stop.is_beside for stop in stops[3:]] == [True, False, True, False]
    searched_for = "<dt>Searched for</dt> <dd>apple<br>pear</dd>"
    assert searched_for in one_line(admin_client.get(page_of(result)).content.decode())
    LLMAnswer.objects.all().delete()
    assert searched_for not in one_line(admin_client.get(page_of(result)).content.decode()), "it was deleted"


def test_a_model_that_is_not_here_is_refused(shelf, server):
    with pytest.raises(UnavailableError, match="the language model server there is unknown: choose one of here"):
        benchmark_of(shelf, query=["rewrite"], llms=["there:llama3"])
