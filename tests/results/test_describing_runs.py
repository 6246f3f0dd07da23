"""What is described next to the test: axes, slices, single queries."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from django.urls import reverse

from apps.results.comparison.axes import compute_effects
from apps.results.comparison.bars import MARGIN, WIDTH
from apps.results.comparison.figures import plot_pairs, plot_query_differences, plot_slice_differences
from apps.results.comparison.highlights import describe_slices
from apps.results.comparison.page import build_context
from apps.results.comparison.panels import build_panel, build_rows, choose_columns
from apps.verdicts.comparing import compare_runs
from apps.verdicts.describing import Bounds, compare_slices, compute_query_differences, find_reversed_runs
from apps.verdicts.sentences import describe_reversal, describe_shares
from benchbench.decimals import short_signed
from tests.pages import one_line
from tests.rankings import added_ranking
from tests.results.compared import make_compared, make_queries, noisy

pytestmark = pytest.mark.django_db
SAME: dict[str, Any] = {"top_k": 10}
HYBRID = {**SAME, "search_mode": "hybrid"}
MODES = [{**SAME, "search_mode": "dense"}, {**HYBRID, "rrf_k": 20}, {**HYBRID, "rrf_k": 40}]


def test_run_unaffected_by_an_axis_represents_all_its_values():
    values = noisy([0.3, 0.5, 0.6], 30)
    effects = compute_effects(compare_runs(make_compared(make_queries(30), values, configs=MODES).runs.all()))
    answers = [(one.axis, one.value, one.reference, one.pairs) for one in effects]
    assert answers == [("search mode", "hybrid", "dense", 2), ("RRF k", "RRF k 40", "RRF k 20", 1)]
    assert effects[0].difference == pytest.approx(((values[1] + values[2]) / 2 - values[0]).mean())
    assert effects[1].difference == pytest.approx((values[2] - values[1]).mean())
    assert effects[0].interval.low < effects[0].difference < effects[0].interval.high


def test_pair_unaffected_by_another_axis_counts_once_per_value(admin_client):
    strict = [{**config, "score_threshold": 0.5} for config in MODES]
    values = noisy([0.3, 0.5, 0.6, 0.2, 0.1, 0.1], 30)
    runs = make_compared(make_queries(30), values, configs=[*MODES, *strict]).runs.all()
    (threshold,) = [one for one in compute_effects(compare_runs(runs)) if one.axis == "threshold"]
    assert (threshold.pairs, threshold.sets) == (3, 4), "the dense pair stands for both RRF k"
    lost = (values[3:] - values[:3]).mean(axis=1)
    assert threshold.difference == pytest.approx((2 * lost[0] + lost[1] + lost[2]) / 4)
    page = one_line(
        admin_client.get(reverse("admin:run_compare"), {"benchmark": runs[0].benchmark_id}).content.decode()
    )
    assert "3<small>counted as 4</small>" in page
    assert "all combinations have the same weight" in page


def test_effects_are_of_the_queries_that_every_run_answered(admin_client):
    values = noisy([0.3, 0.5, 0.6], 30)
    values[0, 4] = np.nan  # of the dense run, which RRF k does not touch
    runs = make_compared(make_queries(30), values, configs=MODES).runs.all()
    mode, rrf_k = compute_effects(compare_runs(runs))
    answered = np.delete(values, 4, axis=1)
    assert mode.difference == pytest.approx(((answered[1] + answered[2]) / 2 - answered[0]).mean())
    assert rrf_k.difference == pytest.approx((answered[2] - answered[1]).mean())
    assert admin_client.get(reverse("admin:run_compare"), {"benchmark": runs[0].benchmark_id}).status_code == 200


def test_an_axis_without_matched_runs_has_no_effect():
    configs = [{"search_mode": "dense", "top_k": 10}, {"search_mode": "sparse", "top_k": 20}]
    runs = make_compared(make_queries(30), noisy([0.3, 0.5], 30), configs=configs).runs.all()
    assert compute_effects(compare_runs(runs)) == []


def test_values_that_are_not_stated_have_words():
    configs: list[dict[str, Any]] = [{"top_k": 10}, {"top_k": 10, "candidates": 50}]
    runs = make_compared(make_queries(30), noisy([0.3, 0.5], 30), configs=configs).runs.all()
    (effect,) = compute_effects(compare_runs(runs))
    assert (effect.value, effect.reference) == ("50 candidates", "as many candidates as top k")


def test_slices_show_means_and_differences_and_flag_small_ones():
    values = noisy([0.5, 0.3, 0.4], 40)
    comparison = compare_runs(
        make_compared(make_queries(40, category=["billing"] * 35 + ["search"] * 5), values).runs.all()
    )
    billing, search = compare_slices(comparison)
    assert (billing.slice.n, billing.slice.is_small, search.slice.is_small) == (35, False, True)
    assert billing.means == pytest.approx(values[:, :35].mean(axis=1).tolist())
    expected = (values[:, :35] - values[0, :35]).mean(axis=1).tolist()
    assert [one.mean for one in billing.differences] == pytest.approx(expected)
    figure = plot_slice_differences(comparison, [billing, search], [0, 2, 1])
    assert figure["data"][0]["z"][0] == pytest.approx([billing.differences[2].mean, billing.differences[1].mean])
    labels = [f"category: {one}, n\N{NO-BREAK SPACE}{count}" for one, count in (("billing", 35), ("search", 5))]
    assert figure["data"][0]["y"] == labels
    large, small = figure["data"][0]["z"]
    assert (None in large, set(small)) == (False, {None}), "a small slice has a number, but no colour"
    assert figure["data"][0]["text"][1] == [short_signed(search.differences[run].mean or 0, 3) for run in (2, 1)]


def test_columns_prefer_runs_with_values_of_their_own(monkeypatch):
    monkeypatch.setattr("apps.results.comparison.panels.MOST_COLUMNS", 3)
    best, third, last = noisy([0.9, 0.5, 0.3], 30)
    mapping = make_queries(30, category=["a"] * 15 + ["b"] * 15)
    comparison = compare_runs(make_compared(mapping, [best, best, third, third, last]).runs.all())
    assert choose_columns(comparison) == [0, 2, 4]
    assert describe_slices(comparison, [0, 1]) == "no run differs from the reference"


def test_slices_contradicting_the_overall_order_are_reported():
    first = np.concatenate([np.full(10, 0.1), np.full(10, 0.1), np.full(20, 0.9)])
    second = np.concatenate([np.full(10, 0.2), np.full(10, 0.2), np.full(20, 0.5)])
    mapping = make_queries(40, category=["a"] * 10 + ["b"] * 10 + ["c"] * 20)
    comparison = compare_runs(make_compared(mapping, [first, second]).runs.all())
    ((run, reversal),) = find_reversed_runs(comparison)
    assert describe_reversal(comparison, run, reversal) == (
        "top 10 leads top 20 over all queries, but by category it is behind in 2 of 3 slices: a and b."
    )


def test_a_slice_that_both_runs_hardly_answered_contradicts_nothing():
    first = np.concatenate([np.full(10, 0.1), np.full(10, 0.1), np.full(20, 0.9)])
    second = np.concatenate([[0.2], np.full(9, np.nan), np.full(10, 0.2), np.full(20, 0.5)])
    mapping = make_queries(40, category=["a"] * 10 + ["b"] * 10 + ["c"] * 20)
    comparison = compare_runs(make_compared(mapping, [first, second]).runs.all())
    assert find_reversed_runs(comparison) == [], (
        "of the slices that are not small one is for the leader and one against it"
    )


def test_slices_cover_the_queries_that_every_run_answered():
    values = noisy([0.5, 0.3, 0.4], 40)
    values[1][3:20] = np.nan
    mapping = make_queries(40, category=["billing"] * 20 + ["search"] * 20)
    runs = list(make_compared(mapping, values).runs.order_by("run_order"))
    three = compare_runs(runs)
    billing, search = compare_slices(three)
    assert [(one.slice.n, one.slice.is_small) for one in (billing, search)] == [(3, True), (20, False)]
    assert {one.n for one in billing.differences} == {3}
    assert billing.means == pytest.approx(values[:, :3].mean(axis=1).tolist())
    displayed = plot_slice_differences(three, [billing, search], three.order)["data"][0]["z"]
    assert [[cell is None for cell in row] for row in displayed] == [[True, True], [False, False]], "without a colour"
    assert [one.slice.n for one in compare_slices(compare_runs([runs[0], runs[2]]))] == [20, 20]


def test_two_runs_are_shown_query_by_query():
    values = noisy([0.5, 0.3], 30)
    benchmark = make_compared(make_queries(30), values)
    runs = list(benchmark.runs.order_by("run_order"))
    comparison = compare_runs(runs)
    differences = values[1] - values[0]
    worst = int(differences.argmin())
    query = benchmark.dataset_version.queries.get(key=f"q{worst:04}")
    result = added_ranking(runs[1], query)
    query_differences = compute_query_differences(comparison, 1, limit=3)
    assert query_differences.differences == pytest.approx(differences.tolist())
    gained = [one for one in sorted(differences, reverse=True)[:3] if one > 0]
    assert [one.difference for one in query_differences.gains] == pytest.approx(gained)
    assert [one.difference for one in query_differences.losses] == pytest.approx(sorted(differences)[:3])
    assert (
        query_differences.losses[0].query,
        query_differences.losses[0].result,
        query_differences.losses[0].reference_result,
    ) == (query, result, None)
    figure = plot_query_differences(query_differences.differences, "nDCG@10")
    assert figure["data"][0]["y"] == pytest.approx(sorted(differences, reverse=True))
    assert figure["layout"]["yaxis"]["title"]["text"] == "nDCG@10, run − reference"
    shares = f"{(differences > 0).mean():.1%} of queries improved, {(differences < 0).mean():.1%} got worse"
    assert shares.replace("%", " %") in describe_shares(comparison), "as the figure counts them"


def test_the_figures_hold_the_numbers_of_the_comparison():
    result = compare_runs(make_compared(make_queries(30), noisy([0.3, 0.5, 0.9], 30)).runs.all())
    second, third = (row["bar"] for row in build_rows(result, [1, 0]))
    lows = [pair.simultaneous.low for run in (1, 0) if (pair := result.comparison.get_pair(run, 2)).simultaneous]
    assert (third.low, second.zero) == (MARGIN, WIDTH - MARGIN), "the scale ends at the lowest interval and at zero"
    assert second.low == pytest.approx(MARGIN + (WIDTH - 2 * MARGIN) * (1 - lows[0] / lows[1]), abs=0.1)
    assert (second.colour, third.colour) == ("worse", "worse")
    matrix = plot_pairs(result)
    first = [result.comparison.get_pair(2, 1).difference, result.comparison.get_pair(2, 0).difference]
    assert matrix["data"][0]["z"][0][1:] == first
    assert matrix["data"][0]["text"][0][1:] == ["&lt; .001", "&lt; .001"]
    assert plot_pairs(compare_runs(result.runs, baseline=result.runs[0])) is None


def test_plotly_takes_every_figure():
    runs = make_compared(make_queries(30), noisy([0.3, 0.5, 0.9], 30), configs=MODES).runs.all()
    for hit in (compare_runs(runs), compare_runs(runs[:2])):
        figures = build_context(hit, Bounds())["figures"] | build_panel("pairs", hit)["figures"]
        assert len(figures) == 2
        for figure in figures.values():
            go.Figure(figure)  # which refuses a key or a value that Plotly does not know
