"""The page of a benchmark's runs at several rates."""

from typing import Any

from django.urls import reverse

from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.running import latencies
from apps.results.leaderboard.load import build_load_context
from apps.retrieval.models import Index
from tests.created import run_benchmark

MATRIX = {"search_modes": ["dense"], "top_k_values": [20], "ann": ["exact", "hnsw(ef_search=40)"]}


def set_load(run: Run, *, achieved: float, p99: float) -> None:
    """Replace the measured times of a run by stated ones."""
    loop = run.timing["open_loop"]
    loop |= {"achieved": achieved, "latency_ms": {"p50": 1.0, "p95": 2.0, "p99": p99, "max": 9.0}}
    loop["service_ms"] = loop["latency_ms"]
    for row in loop["recall"]:
        row["mean"] = 0.95
    run.save()


def load_page(client: Any, benchmark: Benchmark) -> str:
    return str(client.get(reverse("admin:benchmark_load", args=[benchmark.pk])).content.decode())


def test_page_names_the_knee_of_each_setting(library, admin_client, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    benchmark = run_benchmark(library, name="b", matrix=MATRIX | {"rates": [40, 20]}, execution="isolated")
    exact_40, exact_20, hnsw_40, hnsw_20 = benchmark.runs.order_by("run_order")
    page = load_page(admin_client, benchmark)
    assert "fewer than 100 answers" in page
    set_load(exact_20, achieved=20, p99=2)
    set_load(exact_40, achieved=39.5, p99=7)
    set_load(hnsw_20, achieved=20, p99=2)
    set_load(hnsw_40, achieved=39.5, p99=5.9)
    context = build_load_context(benchmark)
    assert [[point.offered for point in setting.points] for setting in context["settings"]] == [[20, 40]] * 2
    assert [(one["name"], one["x"], one["y"]) for one in context["recalls"]["data"]] == [
        ("exact", (1.0,), (20.0,)),
        ("hnsw", (0.95,), (40.0,)),
    ]
    assert [one["y"] for one in context["latencies"]["data"]] == [[2, 7], [2, 5.9]]
    page = load_page(admin_client, benchmark)
    assert "The knee is 20/s: at 40/s p99 is 7.0 ms instead of 2.0 ms." in page
    assert "The knee is at least 40/s, the highest measured rate." in page
    assert "98 % of it or more" in page
    assert page.count("<small>knee</small>") == 2
    results = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
    assert reverse("admin:benchmark_load", args=[benchmark.pk]) in results
    run_page = admin_client.get(reverse("admin:benchmarks_run_change", args=[exact_40.pk])).content.decode()
    assert "p99 at 40/s" in run_page


def test_recall_of_fewer_dimensions_was_not_measured(library, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.0)
    matrix = {"search_modes": ["dense"], "dimensions": [None, Index.objects.get().dimension], "rates": [100]}
    benchmark = run_benchmark(library, name="b", matrix=matrix, execution="isolated")
    points = [setting.points[0] for setting in build_load_context(benchmark)["settings"]]
    assert [point.recall for point in points] == [1, None]


def test_page_without_rates_says_what_to_choose(library, admin_client):
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["sparse"]})
    assert "Choose isolated execution and several requests per second" in load_page(admin_client, benchmark)
    results = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
    assert reverse("admin:benchmark_load", args=[benchmark.pk]) not in results
