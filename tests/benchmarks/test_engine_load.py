"""Search engines under load: what an open loop counts, and what a preview foresees."""

import time
from typing import Any

import pytest

from apps.engines.models import EngineAnswer
from apps.execution.defining.previewing import preview
from apps.execution.running import latencies
from apps.execution.running.timing import mark_shared
from apps.records.comparability import find_differences
from apps.results.exporters.spec002 import build_content
from apps.retrieval.encoders.registry import KeywordEncoder
from tests.benchmarks.shop_server import declare_anew
from tests.created import run_benchmark


def test_an_open_loop_counts_the_waiting(shop_library, shop, monkeypatch):
    shop.seconds = 0.05
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.15)
    options = {"execution": "isolated", "runs_per_query": 2}
    benchmark = run_benchmark(shop_library, name="b", matrix={"engines": ["shop"], "rates": [40]}, **options)
    run = benchmark.runs.get()
    loop = run.timing["open_loop"]
    assert (run.label.rpartition(" · ")[2], run.failed_queries) == ("40/s", 0)
    assert loop["requests"] == 2 * 6, "three queries, asked again until the time is full"
    assert (loop["offered"], loop["threads"], loop["failed"], loop["unsent"]) == (40, 4, 0, 0)
    assert loop["service_ms"]["p50"] >= 50
    assert loop["latency_ms"]["max"] >= loop["service_ms"]["max"]
    assert "p99" not in loop["latency_ms"], "twelve samples say nothing about it"
    moments = sorted(moment for _, moment in shop.asked[-12:])
    for index, moment in enumerate(moments[6:]):
        assert moment - moments[5] >= 0.05 + index / 40, "each is sent when it is due, after the first loop"


def test_times_of_an_open_loop_say_so(shop_library, shop, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    matrix = {"engines": ["shop"], "rates": [None, 100]}
    runs = list(run_benchmark(shop_library, name="b", matrix=matrix, execution="isolated").runs.order_by("run_order"))
    assert [mark_shared([run]) for run in runs] == ["", " (open loop)"]
    assert mark_shared(runs) == " (at a rate: open loop)"
    assert any("isolated at 100/s" in sentence for sentence in find_differences(runs).warnings)


def test_an_open_loop_of_a_part_has_no_total(shop_library, shop, monkeypatch):
    """The loop has the requests to the engine alone: with fusion after it, its latency is not the run's."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    shop.seconds = 0.03
    matrix = {"search_modes": ["engine", "engine+sparse"], "engines": ["shop"], "rates": [200]}
    benchmark = run_benchmark(shop_library, name="b", matrix=matrix, execution="isolated")
    complete, piece = benchmark.runs.order_by("run_order")
    assert complete.timing["total_ms"] == complete.timing["open_loop"]["latency_ms"]["mean"]
    assert not {"total_ms", "percentiles"} & piece.timing.keys()
    assert any("so no total time is known" in warning for warning in piece.warnings)
    assert piece.times.cost_ms is None
    assert 30 <= complete.timing["search_ms"] <= complete.timing["open_loop"]["service_ms"]["max"] * 1.001, (
        "without waiting"
    )
    assert min(one.total_ms - one.search_ms for one in complete.query_results.all()) >= 0
    assert {one.total_ms for one in piece.query_results.all()} == {None}
    for run in (complete, piece):
        content = build_content(run, benchmark.dataset_version)
        seconds = sum((one.search_ms + (one.fuse_ms or 0)) / 1000 for one in run.query_results.all())
        assert content["metadata"]["execution_time_seconds"] == pytest.approx(seconds, abs=0.001), "of three queries"
        times = [detail["execution_time_ms"] for detail in content["detailed_results"]]
        assert times == list(run.query_results.values_list("total_ms", flat=True))


def test_encoding_is_part_of_a_loaded_search(shop_library, shop, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    embed = KeywordEncoder.embed_batch

    def embed_slowly(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.6)
        return embed(*arguments, **options)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", embed_slowly)
    declare_anew(query={"q": "{query}", "size": "{size}", "vector": "{vector}"}, parameters={}, encoder="keyword:a")
    run = run_benchmark(
        shop_library, name="b", matrix={"engines": ["shop"], "rates": [100]}, execution="isolated"
    ).runs.get()
    assert run.failed_queries == 0
    assert run.timing["open_loop"]["service_ms"]["p50"] >= 600 / 3, "the three queries were encoded together"
    assert 200 <= run.timing["search_ms"] <= run.timing["total_ms"]
    assert min(one.total_ms - one.search_ms for one in run.query_results.all()) >= 0


def test_isolated_requests_are_foreseen_one_by_one(shop_library, shop):
    """An engine takes four at once in shared execution, but its limit of requests per second holds in both."""
    run_benchmark(shop_library, name="b", matrix={"engines": ["shop"]})
    EngineAnswer.objects.update(service_ms=400)

    def foresee(execution: str) -> float:
        return preview(shop_library, {"engines": ["shop"]}, execution=execution).estimate_seconds

    assert [foresee("shared"), foresee("isolated")] == [pytest.approx(3 * 0.1), pytest.approx(3 * 0.4)]
    declare_anew(rate=2)
    assert [foresee("shared"), foresee("isolated")] == [pytest.approx(3 * 0.5)] * 2
