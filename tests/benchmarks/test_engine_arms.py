"""Search engines as arms of a matrix, against a small server over HTTP."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from apps.benchmarks.comparability import find_differences
from apps.benchmarks.defining.creating import CloneError, clone
from apps.benchmarks.defining.previewing import preview
from apps.benchmarks.launching import launch, retry
from apps.benchmarks.measuring.reading import load_rankings
from apps.benchmarks.models import Benchmark
from apps.benchmarks.running import latencies
from apps.benchmarks.running.timing import mark_shared, sum_cost_ms
from apps.engines.asking import healths
from apps.engines.models import EngineAnswer
from apps.engines.storing import find_snippet
from apps.mappings.creating import ensure_external
from apps.operations.working import wait
from apps.results.configurations import build_configuration
from apps.results.exporters.spec002 import build_content
from apps.results.triage.lost_documents import UntracedError, triage_of
from apps.results.triage.queries import load_hits
from apps.retrieval.encoders.registry import KeywordEncoder
from benchbench.errors import BenchbenchError
from benchbench.ir.planning.matrix import MatrixError
from benchbench.site.panels import change_url
from tests.benchmarks.conftest import make_library
from tests.benchmarks.shop_server import Shop
from tests.created import create_benchmark, run_benchmark


@pytest.fixture
def shop(tmp_path, settings) -> Iterator[Shop]:
    server = Shop()
    declared = {
        "url": f"http://127.0.0.1:{server.server_port}/search",
        "version": "7",
        "query": {"q": "{query}", "size": "{size}", "newest": "{newest}"},
        "parameters": {"newest": {"default": False}},
        "private": True,
        "page_size": 100,
        "answer": {
            "hits": "hits",
            "id": "id",
            "score": "score",
            "title": "title",
            "snippet": "text",
            "complete_when": "done",
        },
    }
    path = tmp_path / "engines.yaml"
    path.write_text(yaml.safe_dump({"engines": {"shop": declared}}))
    settings.BENCHBENCH_ENGINES = str(path)
    healths.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def library(transactional_db, shop):
    library = make_library(documents=12, queries=3)
    shop.ranking = list(library.collection.documents.order_by("external_id").values_list("external_id", flat=True))
    return library


def list_documents(benchmark: Benchmark, order: int) -> list[list[str]]:
    run = benchmark.runs.get(run_order=order)
    names = dict(benchmark.mapping.collection.documents.values_list("pk", "external_id"))
    return [[names[pk] for pk in documents] for documents in load_rankings(run).values()]


def test_an_engine_is_measured_beside_an_index(library, shop):
    matrix = {"search_modes": ["dense", "engine"], "engines": ["shop(newest=false|true)"], "top_k_values": [10]}
    benchmark = run_benchmark(library, name="b", matrix=matrix | {"k_values_for_metrics": [5]})
    labels = list(benchmark.runs.order_by("run_order").values_list("label", "status", "failed_queries"))
    assert labels == [
        ("dense · top 10", "completed", 0),
        ("shop(newest=false) · top 10", "completed", 0),
        ("shop(newest=true) · top 10", "completed", 0),
    ]
    assert list_documents(benchmark, 2) == [shop.ranking[:10]] * 3
    assert list_documents(benchmark, 3) == [shop.ranking[::-1][:10]] * 3
    run = benchmark.runs.get(run_order=3)
    assert run.provenance["engine"]["version"] == "7"
    assert run.provenance["engine"]["parameters"] == {"newest": True}
    assert run.timing["search_ms"] > 0
    assert run.evaluations.get().means["nDCG@10"] >= 0


def test_stages_follow_an_engine(library, shop):
    """Fused by rank with our own list, and its first hits reranked."""
    modes = {
        "search_modes": ["dense", "sparse", "engine", "engine+dense", "engine+sparse"],
        "use_reranker": [False, True],
    }
    benchmark = run_benchmark(
        library, name="b", matrix=modes | {"engines": ["shop"], "top_k_values": [10], "k_values_for_metrics": [5]}
    )
    assert set(benchmark.runs.values_list("status", flat=True)) == {"completed"}, [
        (run.label, run.error_message) for run in benchmark.runs.all()
    ]
    orders = {(run.config["search_mode"], run.config["use_reranker"]): run.run_order for run in benchmark.runs.all()}
    for own in ("dense", "sparse"):
        ours = list_documents(benchmark, orders[own, False])
        for query, fused in enumerate(list_documents(benchmark, orders[f"engine+{own}", False])):
            scores = dict.fromkeys([*ours[query], *shop.ranking[:10]], 0.0)
            for ranking in (ours[query], shop.ranking[:10]):
                for rank, document in enumerate(ranking, start=1):
                    scores[document] += 1 / (60 + rank)
            assert [scores[document] for document in fused] == sorted(scores.values(), reverse=True)[:10]
    reranked = list_documents(benchmark, orders["engine", True])
    assert [sorted(found) for found in reranked] == [sorted(shop.ranking[:10])] * 3


def test_ids_alone_are_enough_for_an_engine(library, shop):
    """Documents that are not here: the judged ones have their grades, the others are unjudged."""
    shop.ranking.insert(3, "elsewhere")
    mapping = ensure_external(library.dataset)
    matrix = {"engines": ["shop"], "top_k_values": [20]}
    benchmark = run_benchmark(mapping, name="b", matrix=matrix)
    assert list_documents(benchmark, 1) == [shop.ranking] * 3
    document = mapping.collection.documents.get(external_id="elsewhere")
    assert (document.title, document.text) == ("Title of elsewhere", "")
    assert find_snippet(library.dataset.queries.first().text, document) == "about elsewhere"
    hit = load_hits(benchmark.runs.get().query_results.first(), {}, limit=4)[3]
    assert (hit.score, "".join(piece.text for piece in hit.excerpt)) == (None, "about elsewhere")
    full = run_benchmark(library, name="c", matrix=matrix | {"engines": ["shop(newest=true)"]})
    assert full.runs.get().error_message.startswith("Every query failed; the first: The engine named the document")


def test_names_that_no_document_has_are_errors(library, shop):
    """URIs, where the ids are other ones, would be documents without judgments."""
    shop.ranking.insert(3, "x" * 501)
    mapping = ensure_external(library.dataset)
    run = run_benchmark(mapping, name="b", matrix={"engines": ["shop"], "top_k_values": [20]}).runs.get()
    assert "The engine named the document 'xxxx" in run.error_message
    path = Path(settings.BENCHBENCH_ENGINES)
    path.write_text(path.read_text() + "    document: {by: uri}\n")
    shop.ranking.pop(3)
    run = run_benchmark(mapping, name="c", matrix={"engines": ["shop"], "top_k_values": [20]}).runs.get()
    assert "or correct `document` in the declaration" in run.error_message


def test_an_answer_is_asked_for_once(library, shop):
    """A retry asks only what failed; a new benchmark asks again."""
    shop.failing = True
    benchmark = create_benchmark(library, name="b", matrix={"engines": ["shop"]})
    wait(launch(benchmark))
    assert benchmark.runs.get().status == "failed"
    shop.failing, shop.asked = False, []
    wait(retry(benchmark))
    assert benchmark.runs.get().status == "completed"
    assert len(shop.asked) == 3
    run_benchmark(library, name="c", matrix={"engines": ["shop"]})
    assert len(shop.asked) == 6


def test_requests_that_fail_for_now_are_repeated_and_counted(library, shop):
    shop.unavailable = lambda number: number % 3 == 1
    run = run_benchmark(library, name="b", matrix={"engines": ["shop"]}).runs.get()
    assert (run.status, run.failed_queries) == ("completed", 0)
    retries = len(shop.asked) - 3
    assert run.provenance["engine"]["retries"] == retries > 0
    assert any("failed at first" in warning for warning in run.warnings)


@pytest.mark.thorough
def test_an_arm_waits_for_an_engine_that_is_down(library, shop):
    """And fails with a sentence once its patience ends; a retry asks for the rest."""
    shop.unavailable = lambda number: 2 <= number <= 5
    run = run_benchmark(library, name="b", matrix={"engines": ["shop"]}).runs.get()
    assert (run.status, run.failed_queries) == ("completed", 0)
    shop.asked.clear()
    path = Path(settings.BENCHBENCH_ENGINES)
    path.write_text(path.read_text() + "    patience: 1\n")
    shop.unavailable = lambda number: number > 1
    benchmark = run_benchmark(library, name="c", matrix={"engines": ["shop"]})
    assert benchmark.runs.get().status == "failed"
    assert benchmark.runs.get().error_message.startswith("The engine shop is down: it did not answer for 1 seconds")
    shop.unavailable = lambda number: False
    wait(retry(benchmark))
    assert (benchmark.runs.get().status, benchmark.runs.get().failed_queries) == ("completed", 0)


def test_an_open_loop_counts_the_waiting(library, shop, monkeypatch):
    shop.seconds = 0.05
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.15)
    options = {"execution": "isolated", "runs_per_query": 2}
    benchmark = run_benchmark(library, name="b", matrix={"engines": ["shop"], "rates": [40]}, **options)
    run = benchmark.runs.get()
    loop = run.timing["open_loop"]
    assert (run.label.rpartition(" · ")[2], run.failed_queries) == ("40/s", 0)
    assert loop["requests"] == 2 * 6, "three queries, asked again until the time is full"
    assert (loop["offered"], loop["threads"], loop["failed"], loop["unsent"]) == (40, 4, 0, 0)
    assert loop["service_ms"]["p50"] >= 50
    assert loop["latency_ms"]["max"] >= loop["service_ms"]["max"]
    assert "p99" not in loop["latency_ms"], "twelve samples say nothing about it"
    first, *_, last = (moment for _, moment in shop.asked[-6:])
    assert last - first > 4.5 / 40, "each is sent when it is due, and not before"


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ({"engines": ["store"]}, "engines: "),
        ({"engines": ["shop(oldest=true)"]}, "engines: "),
        ({"search_modes": ["engine"]}, "needs a search engine"),
        ({"search_modes": ["dense"], "engines": ["shop"]}, "no search mode asks an engine"),
        ({"engines": ["shop", "shop()"]}, "occurs more than once"),
    ],
)
def test_a_wrong_engine_is_refused(library, matrix, sentence):
    with pytest.raises(MatrixError, match=sentence):
        create_benchmark(library, name="b", matrix=matrix)
    with pytest.raises(MatrixError, match=sentence):
        preview(library, matrix)
    assert not Benchmark.objects.exists()


def declare_anew(**changes: Any) -> None:
    """Change the declaration of the engine, or with `shop=None` remove it."""
    path = Path(settings.BENCHBENCH_ENGINES)
    declared = yaml.safe_load(path.read_text())["engines"]["shop"] | changes
    path.write_text(yaml.safe_dump({} if "shop" in changes else {"engines": {"shop": declared}}))


def test_an_engine_no_longer_declared_fails_its_runs_alone(library, shop):
    matrix = {"search_modes": ["sparse", "engine"], "engines": ["shop"]}
    ended = run_benchmark(library, name="a", matrix=matrix)
    benchmark = create_benchmark(library, name="b", matrix=matrix)
    operation = launch(benchmark)
    declare_anew(shop=None)
    wait(operation)
    own, asked = benchmark.runs.order_by("run_order")
    assert (own.status, asked.status) == ("completed", "failed")
    assert "shop is not declared" in asked.error_message
    with pytest.raises(CloneError, match="shop is not declared"):
        clone(ended)
    with pytest.raises(BenchbenchError, match="shop is not declared"):
        retry(benchmark)


def test_an_old_outage_does_not_fail_a_retried_run(library, shop):
    declare_anew(patience=0.1)
    shop.unavailable = lambda number: True
    benchmark = run_benchmark(library, name="b", matrix={"engines": ["shop"]})
    assert "is down" in benchmark.runs.get().error_message
    shop.unavailable, shop.wrong = lambda number: False, {shop.asked[0][0]}
    wait(retry(benchmark))
    run = benchmark.runs.get()
    assert (run.status, run.failed_queries) == ("completed", 1)


def test_files_name_the_engine_that_took_part(library, shop):
    matrix = {"search_modes": ["dense", "engine+dense", "engine+sparse"], "engines": ["shop"]}
    benchmark = run_benchmark(library, name="b", matrix=matrix)
    names = [build_configuration(run) for run in benchmark.runs.select_related("index").order_by("run_order")]
    assert [one.strategy for one in names] == ["flat", "shop + flat", "shop + flat"]
    assert names[1].embedding_model == names[0].embedding_model
    assert names[2].embedding_model is None


def test_stages_of_an_engine_are_unknown(library, shop):
    run = run_benchmark(library, name="b", matrix={"engines": ["shop"]}).runs.get()
    with pytest.raises(UntracedError, match="asks an engine that answers as a whole"):
        triage_of(run)


def test_times_of_an_open_loop_say_so(library, shop, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    matrix = {"engines": ["shop"], "rates": [None, 100]}
    runs = list(run_benchmark(library, name="b", matrix=matrix, execution="isolated").runs.order_by("run_order"))
    assert [mark_shared([run]) for run in runs] == ["", " (open loop)"]
    assert mark_shared(runs) == " (at a rate: open loop)"
    assert any("isolated at 100/s" in sentence for sentence in find_differences(runs).warnings)


def test_an_open_loop_of_a_part_has_no_total(library, shop, monkeypatch):
    """The loop has the requests to the engine alone: with fusion after it, its latency is not the run's."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    shop.seconds = 0.03
    matrix = {"search_modes": ["engine", "engine+sparse"], "engines": ["shop"], "rates": [200]}
    benchmark = run_benchmark(library, name="b", matrix=matrix, execution="isolated")
    whole, part = benchmark.runs.order_by("run_order")
    assert whole.timing["total_ms"] == whole.timing["open_loop"]["latency_ms"]["mean"]
    assert not {"total_ms", "percentiles"} & part.timing.keys()
    assert any("so no total time is known" in warning for warning in part.warnings)
    assert sum_cost_ms(part) is None
    assert 30 <= whole.timing["search_ms"] <= whole.timing["open_loop"]["service_ms"]["max"] * 1.001, "without waiting"
    assert min(one.total_ms - one.search_ms for one in whole.query_results.all()) >= 0
    assert {one.total_ms for one in part.query_results.all()} == {None}
    for run in (whole, part):
        content = build_content(run, benchmark.dataset_version)
        seconds = sum((one.search_ms + (one.fuse_ms or 0)) / 1000 for one in run.query_results.all())
        assert content["metadata"]["execution_time_seconds"] == pytest.approx(seconds, abs=0.001), "of three queries"
        times = [detail["execution_time_ms"] for detail in content["detailed_results"]]
        assert times == list(run.query_results.values_list("total_ms", flat=True))


def test_encoding_is_part_of_a_loaded_search(library, shop, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    embed = KeywordEncoder.embed_batch

    def embed_slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.6)
        return embed(*arguments, **options)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", embed_slowly)
    declare_anew(query={"q": "{query}", "size": "{size}", "vector": "{vector}"}, parameters={}, encoder="keyword:a")
    run = run_benchmark(
        library, name="b", matrix={"engines": ["shop"], "rates": [100]}, execution="isolated"
    ).runs.get()
    assert run.failed_queries == 0
    assert run.timing["open_loop"]["service_ms"]["p50"] >= 600 / 3, "the three queries were encoded together"
    assert 200 <= run.timing["search_ms"] <= run.timing["total_ms"]
    assert min(one.total_ms - one.search_ms for one in run.query_results.all()) >= 0


def test_isolated_requests_are_foreseen_one_by_one(library, shop):
    """An engine takes four at once in shared execution, but its limit of requests per second holds in both."""
    run_benchmark(library, name="b", matrix={"engines": ["shop"]})
    EngineAnswer.objects.update(service_ms=400)

    def foresee(execution: str) -> float:
        return preview(library, {"engines": ["shop"]}, execution=execution).estimate_seconds

    assert [foresee("shared"), foresee("isolated")] == [pytest.approx(3 * 0.1), pytest.approx(3 * 0.4)]
    declare_anew(rate=2)
    assert [foresee("shared"), foresee("isolated")] == [pytest.approx(3 * 0.5)] * 2


def test_mapping_of_ids_leads_to_a_benchmark(library, shop, admin_client):
    mapping = ensure_external(library.dataset)
    address = f"/admin/benchmarks/benchmark/add/?mapping={mapping.pk}"
    assert address in admin_client.get(change_url(mapping)).content.decode()
    declare_anew(shop=None)
    assert address not in admin_client.get(change_url(mapping)).content.decode()
