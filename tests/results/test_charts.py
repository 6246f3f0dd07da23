import json

import plotly.graph_objects as go

from apps.mappings.models import Mapping
from apps.results.charts import quality_and_cost
from apps.results.leaderboard.runs import leaderboard
from tests.factories import make_benchmark


def test_it_has_a_point_for_every_run_with_a_value(mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [0.25, None, 0.75])
    figure = quality_and_cost(leaderboard(benchmark))
    assert figure is not None
    (trace,) = figure["data"]
    assert trace["name"] == "dense"
    assert list(zip(trace["x"], trace["y"], strict=True)) == [(30.0, 0.75), (10.0, 0.25)]
    assert trace["text"] == ["1. top 30", "2. top 10"]
    assert "type" not in figure["layout"]["xaxis"]
    assert figure["layout"]["xaxis"]["title"]["text"] == "ms per query (shared)"
    json.dumps(figure)
    go.Figure(figure)  # Plotly knows every key, and takes every value


def test_far_apart_times_get_a_logarithmic_axis(mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [0.25, 0.75])
    benchmark.runs.filter(run_order=2).update(timing={"total_ms": 5000.0})
    figure = quality_and_cost(leaderboard(benchmark))
    assert figure is not None
    axis = figure["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert {"10", "5000"} <= set(axis["ticktext"])


def test_without_a_value_there_is_no_figure(mapping: Mapping) -> None:
    assert quality_and_cost(leaderboard(make_benchmark(mapping, [None]))) is None
