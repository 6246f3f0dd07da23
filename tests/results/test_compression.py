"""The page of compression: the table and its sentences, against a computation of its own on known losses."""

from typing import Any

import numpy as np
import pytest
from django.urls import reverse

from apps.records.models import Benchmark
from apps.results.ladders.compression import list_ladders, plot_ladder
from apps.retrieval.models import ChunkSet, Index
from tests.results.compared import make_compared, make_queries
from tests.site import results_url, text_of

QUERIES, CHUNKS, DIMENSION = 300, 1000, 64
FULL = 4 * CHUNKS * DIMENSION
SETTINGS = {  # bytes, milliseconds, and the mean and spread of the differences to the full run
    "exact": (None, 8.0, 0.0, 0.0),
    "compressed(precision=binary, rescore=0)": (8_000, 1.0, -0.1, 0.2),
    "compressed(dimensions=32)": (32_000, 4.0, -0.001, 0.02),
    "hnsw": (400_000, 2.0, 0.0, 0.15),
}
pytestmark = pytest.mark.django_db


def make_values(queries: int = QUERIES) -> np.ndarray:
    rng = np.random.default_rng(3)
    full = rng.uniform(0.3, 0.7, queries)
    rows = []
    for _, _, loss, spread in SETTINGS.values():
        noise = rng.standard_normal(queries)
        rows.append(full + loss + spread * (noise - noise.mean()) / noise.std())
    return np.array(rows)


def make_ladder(values: np.ndarray, *, execution: str = "isolated", weights: Any = None, **fields: Any) -> Benchmark:
    mapping = make_queries(values.shape[1], **({} if weights is None else {"weight": weights}))
    configs = [{"ann": ann, "top_k": 10} for ann in SETTINGS]
    matrix = {"ann": list(SETTINGS)}
    benchmark = make_compared(mapping, values, configs=configs, execution=execution, matrix=matrix, **fields)
    chunk_set = ChunkSet.objects.create(
        collection=mapping.collection, strategy="flat", fingerprint="f", chunk_count=CHUNKS
    )
    index = Index.objects.create(
        collection=mapping.collection, name="i", encoder="keyword:a", chunk_set=chunk_set, dimension=DIMENSION
    )
    for run, (size, ms, *_) in zip(benchmark.runs.order_by("run_order"), SETTINGS.values(), strict=True):
        run.index = index
        run.timing = {
            "execution": execution,
            "search_ms": 2 * ms,
            "total_ms": 90 + 2 * ms,
            "percentiles": {"search_ms": {"p50": ms}},
        }
        if size:
            recall = [{"k": 10, "mean": 0.9, "worst": 0.5, "queries": 9}]
            loss = {"measure": "nDCG@10", "approximate": None, "exact": None, "cost": None}
            run.provenance = {"ann": {"bytes": size, "recall": recall, "losses": {}, "ndcg": loss}}
        run.save()
    return benchmark


def compute_interval(values: np.ndarray, number: int, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Return the simultaneous interval of a run against the first: max |t| over random signs, Westfall and Young.

    With weights, as the roots of the quadratic equation that significance.py states.
    """
    w = np.ones(values.shape[1]) if weights is None else weights / weights.mean()
    scaled = w * (values[1:] - values[0])
    signs = np.random.default_rng(99).choice([-1.0, 1.0], (20_000, scaled.shape[1]))
    bound = np.quantile(np.max(np.abs(signs @ scaled.T) / np.sqrt((scaled**2).sum(axis=1)), axis=1), 0.95)
    difference, n = scaled[number - 1] / w, len(w)
    mean = (w * difference).sum() / n
    a = n**2 - bound**2 * (w**2).sum()
    b = -2 * (n**2 * mean - bound**2 * (w**2 * difference).sum())
    c = n**2 * mean**2 - bound**2 * (w**2 * difference**2).sum()
    root = np.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_smallest_and_fastest_are_named_with_costs_and_interval():
    values = make_values()
    (ladder,) = list_ladders(make_ladder(values))
    by_label = {row.label: row for row in ladder.rows}
    assert ladder.rows[0].label == "exact"
    assert {label: row.is_good_enough for label, row in by_label.items()} == {
        "exact": True,
        "compressed(precision=binary, rescore=0)": False,
        "compressed(dimensions=32)": True,
        "hnsw": True,
    }
    for number, label in enumerate(list(SETTINGS)[1:], start=1):
        pair = by_label[label].pair
        low, high = compute_interval(values, number)
        assert pair.difference == pytest.approx((values[number] - values[0]).mean())
        assert (pair.simultaneous.low, pair.simultaneous.high) == pytest.approx((low, high), abs=0.15 * (high - low))
    smallest, fastest = ladder.sentences
    assert smallest.startswith(
        "The smallest setting that is not significantly worse than exact is compressed(dimensions=32): 31.2 KB in "
        "memory and 250.0 KB on disk, 4.0 ms per search, median; nDCG@10 −.0010 (simultaneous 95 % interval −.00"
    )
    assert "By it, the loss is at most .00" in smallest
    assert fastest.startswith("The fastest setting that is not significantly worse than exact is hnsw: 390.6 KB")
    assert "The interval is wide: a loss of .02" in fastest


def test_sizes_name_what_is_in_memory_and_on_disk():
    (ladder,) = list_ladders(make_ladder(make_values()))
    assert {row.label: (row.memory_bytes, row.disk_bytes) for row in ladder.rows} == {
        "exact": (FULL, 0),
        "compressed(precision=binary, rescore=0)": (8_000, 0),
        "compressed(dimensions=32)": (32_000, FULL),
        "hnsw": (400_000, FULL),
    }


def test_figure_has_the_simultaneous_intervals_as_bars():
    (ladder,) = list_ladders(make_ladder(make_values()))
    (trace,) = plot_ladder(ladder)["data"]
    for row, y, up, down in zip(
        ladder.rows, trace["y"], trace["error_y"]["array"], trace["error_y"]["arrayminus"], strict=True
    ):
        if row.pair:
            assert (y - down, y + up) == pytest.approx((row.pair.simultaneous.low, row.pair.simultaneous.high))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (0, "No query of 300 changed; up to 0.99 % may."),
        (9, "Only 9 of 300 queries changed, too few for an interval."),
        (10, "By it, the loss is at most .0"),
    ],
)
def test_few_changed_queries_have_no_interval(admin_client, changed, message):
    values = np.full((4, QUERIES), 0.5)
    values[1:, :changed] += 0.03 * np.random.default_rng(2).standard_normal((3, changed))
    benchmark = make_ladder(values)
    (ladder,) = list_ladders(benchmark)
    assert all(message in sentence for sentence in ladder.sentences)
    assert [row.interval is None for row in ladder.rows[1:]] == [changed < 10] * 3
    figure = plot_ladder(ladder)
    assert figure["layout"]["yaxis"]["range"] == pytest.approx([-0.012, 0.012])
    text = text_of(admin_client.get(reverse("admin:benchmark_compression", args=[benchmark.pk])))
    assert message in text
    assert "at most .0000" not in text
    assert "[.0000, .0000]" not in text


@pytest.mark.parametrize(("changed", "good"), [(5, True), (9, False)])
def test_few_changes_are_judged_by_the_corrected_p(changed, good):
    values = np.full((4, QUERIES), 0.5)
    values[1, :changed] -= 0.1
    (ladder,) = list_ladders(make_ladder(values))
    row = next(row for row in ladder.rows if row.pair and row.pair.losses)
    assert row.interval is None
    assert (row.is_good_enough, row.pair.p_adjusted > 0.05) == (good, good)


def test_equal_losses_of_all_queries_are_a_loss():
    values = np.full((4, QUERIES), 0.5)
    values[1] -= 0.1
    (ladder,) = list_ladders(make_ladder(values))
    assert [row.is_good_enough for row in ladder.rows if row.pair and row.pair.losses] == [False]


def test_demand_weights_the_intervals():
    values = make_values()
    weights = np.random.default_rng(1).integers(1, 9, QUERIES).astype(float)
    (ladder,) = list_ladders(make_ladder(values, weights=weights.tolist(), weighting="demand"))
    pair = next(row.pair for row in ladder.rows if row.label == "hnsw")
    low, high = compute_interval(values, 3, weights)
    assert pair.difference == pytest.approx(np.average(values[3] - values[0], weights=weights))
    assert (pair.simultaneous.low, pair.simultaneous.high) == pytest.approx((low, high), abs=0.15 * (high - low))
    assert "nDCG@10, weighted by demand" in ladder.sentences[0]


def test_few_queries_name_no_setting():
    (ladder,) = list_ladders(make_ladder(make_values(4)))
    assert ladder.sentences == [
        "There are too few queries, or a few have most of the demand: no interval bounds a loss."
    ]


def test_page_shows_named_times_and_results_link_to_it(admin_client):
    benchmark = make_ladder(make_values(), execution="shared")
    address = reverse("admin:benchmark_compression", args=[benchmark.pk])
    assert address in admin_client.get(results_url(benchmark)).content.decode()
    text = text_of(admin_client.get(address))
    assert "mean ms of search (shared)" in text
    assert "8.0 ms per search, shared" in text
    assert "median ms" not in text
    assert "fastest setting" not in text, "shared times favour exact search"
    assert "The smallest setting that is not significantly worse than exact is compressed(dimensions=32)" in text
    benchmark.runs.get(run_order=1).delete()
    assert "Exact search did not run with these settings: add exact to ann." in text_of(admin_client.get(address))
