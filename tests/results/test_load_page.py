"""The page of a benchmark's runs at several rates."""

import csv
import re
from typing import Any

import pytest
from django.urls import reverse

from apps.execution.running import latencies
from apps.records.models import Benchmark, Run
from apps.records.models.timing import OpenLoop
from apps.results.exporters.tables import write_csv, yield_runs
from apps.results.ladders.compression import list_ladders
from apps.results.ladders.load import RateRung, Setting, load_settings, plot_latencies, plot_recalls
from apps.results.leaderboard.page import list_times
from apps.retrieval.models import Index
from apps.verdicts.ranked_runs import load_leaderboard
from benchbench.decimals import format_ms
from tests.created import run_benchmark

MATRIX = {"search_modes": ["dense"], "top_k_values": [20], "ann": ["exact", "hnsw(ef_search=40)"]}


def set_load(run: Run, *, achieved: float, p99: float, requests: int = 1000) -> None:
    """Replace the measured times of a run by stated ones."""
    loop = run.timing["open_loop"]
    loop |= {"achieved": achieved, "latency_ms": {"p50": 1.0, "p95": 2.0, "p99": p99, "max": 9.0}, "requests": requests}
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
    for run in (exact_40, exact_20, hnsw_40, hnsw_20):
        set_load(run, achieved=run.config["rate"], p99=2, requests=99)
    page = load_page(admin_client, benchmark)
    assert "fewer than 100 answers" in page
    set_load(exact_20, achieved=20, p99=2)
    set_load(exact_40, achieved=39.5, p99=7)
    set_load(hnsw_20, achieved=20, p99=2)
    set_load(hnsw_40, achieved=39.5, p99=5.9)
    settings = load_settings(benchmark)
    assert [[rung.loop.offered for rung in setting.rungs] for setting in settings] == [[20, 40]] * 2
    assert [(one["name"], *one["x"], *one["y"]) for one in plot_recalls(settings, 10)["data"]] == [
        ("exact", 1.0, 20.0),
        ("hnsw", 0.95, 40.0),
    ]
    assert [[*one["y"]] for one in plot_latencies(settings)["data"]] == [[2, 7], [2, 5.9]]
    page = load_page(admin_client, benchmark)
    assert "The knee is 20/s: at 40/s p99 is 7.0 ms instead of 2.0 ms." in page
    assert "The knee is at least 40/s, the highest measured rate, by p99." in page
    assert "98 % of it or more" in page
    assert page.count("<small>knee</small>") == 2
    results = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
    assert reverse("admin:benchmark_load", args=[benchmark.pk]) in results
    run_page = admin_client.get(reverse("admin:benchmarks_run_change", args=[exact_40.pk])).content.decode()
    assert "p99 at 40/s" in run_page


def test_every_page_has_one_latency_of_a_rate(library, admin_client, monkeypatch):
    """That of all answers, from when each query was due; the first answers of the queries are others."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.3)
    benchmark = run_benchmark(library, name="b", matrix=MATRIX | {"rates": [400]}, execution="isolated")
    runs = list(benchmark.runs.order_by("run_order"))
    loops = [run.timing["open_loop"]["latency_ms"] for run in runs]
    assert {run.timing["open_loop"]["requests"] for run in runs} == {120}
    (ladder,) = list_ladders(benchmark)
    assert sorted(row.ms for row in ladder.rows) == sorted(loop["p50"] for loop in loops)
    assert ladder.time_name == "median ms of latency (open loop)"
    rows = load_leaderboard(benchmark).in_run_order
    assert [row.ms for row in rows] == [loop["mean"] for loop in loops]
    for row, loop in zip(rows, loops, strict=True):
        assert list_times(row.run.times) == [(name, loop[name]) for name in ("p50", "p95", "p99")]
    lines = list(csv.DictReader(write_csv(yield_runs)(benchmark, benchmark.dataset_version)))
    assert [float(line["total_ms"]) for line in lines] == [loop["mean"] for loop in loops]
    page = admin_client.get(reverse("admin:benchmarks_run_change", args=[runs[0].pk])).content.decode()
    tiles = re.findall(r"<span>([^<]*)</span><strong>([^<]*)</strong>", page)
    assert [value for name, value in tiles if "p99" in name] == [format_ms(loops[0]["p99"])]
    assert "total" not in dict(tiles)


def test_recall_of_fewer_dimensions_was_not_measured(library, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.0)
    matrix = {"search_modes": ["dense"], "dimensions": [None, Index.objects.get().dimension], "rates": [100]}
    benchmark = run_benchmark(library, name="b", matrix=matrix, execution="isolated")
    assert [setting.rungs[0].recall for setting in load_settings(benchmark)] == [1, None]


def test_page_without_rates_says_what_to_choose(library, admin_client):
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["sparse"]})
    assert "Choose isolated execution and several requests per second" in load_page(admin_client, benchmark)
    results = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
    assert reverse("admin:benchmark_load", args=[benchmark.pk]) not in results


def rung_of(offered: float, achieved: float, p99: float | None, requests: int = 1000) -> RateRung:
    latencies = {"p50": 1.0, "p95": 2.0, "p99": p99 or 0.0}
    requests = requests if p99 else 99
    loop = OpenLoop(offered=offered, achieved=achieved, latency_ms=latencies, requests=requests)
    return RateRung(run=Run(), recall=0.9, label="dense", loop=loop)


@pytest.mark.parametrize(
    ("rows", "knee", "sentence"),
    [
        ([(10, 10, 5.0), (20, 19.7, 14.9), (40, 39, 90.0)], 20, "The knee is 20/s: at 40/s only 39.0/s are answered."),
        ([(10, 10, 5.0), (20, 20, 15.1)], 10, "The knee is 10/s: at 20/s p99 is 15.1 ms instead of 5.0 ms."),
        ([(10, 10, 5.0), (200, 196, 15.0)], 200, "The knee is at least 200/s, the highest measured rate, by p99."),
        ([(10, 9.7, 5.0), (20, 9.7, 50.0)], None, "No knee: at 10/s only 9.7/s are answered."),
        ([(10, 10, None), (20, 20, 5.0)], None, "fewer than 100 answers"),
        (
            [(10, 10, 5.0), (50, 50, 15.1), (100, 100, 9.0), (400, 400, 9.0)],
            10,
            "The knee is 10/s: at 50/s p99 is 15.1 ms instead of 5.0 ms. Yet it sustained 100/s, 400/s: this "
            "is not monotone. Repeat it on an idle machine.",
        ),
    ],
)
def test_the_knee_of_hand_examples(rows, knee, sentence):
    setting = Setting("dense", "exact", [rung_of(*row) for row in rows])
    assert (setting.knee and setting.knee.loop.offered) == knee
    assert sentence in setting.sentence


def test_the_knee_of_few_answers_is_by_p95():
    """p99 of 999 answers would rest on ten."""
    low, high = rung_of(10, 10, 5.0), rung_of(20, 20, 50.0)
    few = rung_of(10, 10, 5.0, requests=999)
    assert Setting("dense", "exact", [low, high]).knee == low
    assert Setting("dense", "exact", [few, high]).knee == high
    assert Setting("dense", "exact", [few, high]).sentence.endswith("the highest measured rate, by p95.")
