import json
import re
from typing import Any

import plotly.graph_objects as go
import pytest
from django.test import Client

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Run
from apps.benchmarks.runs import find_run
from apps.mappings.models import Mapping
from apps.operations.launching import cancel_operation
from apps.operations.working import perform_batch, wait
from apps.results.charts import quality_and_cost
from apps.results.exporters.documents import text_of
from apps.results.leaderboard.runs import leaderboard, measures_at
from tests.benchmarks.conftest import make_library
from tests.created import create_benchmark
from tests.factories import make_benchmark
from tests.results.test_pages import results_url

Place = tuple[int, int | None, bool]


def places(mapping: Mapping, values: list[float | None]) -> list[Place]:
    """Return (run order, rank, tied) of every row of a benchmark whose runs have these means."""
    board = leaderboard(make_benchmark(mapping, values))
    return [(row.run.run_order, row.rank, row.tied) for row in board.rows]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([0.1, 0.3, 0.2], [(2, 1, False), (3, 2, False), (1, 3, False)]),
        ([0.2, 0.3, 0.2], [(2, 1, False), (1, 2, True), (3, 2, True)]),
        ([0.3, 0.3, 0.1], [(1, 1, True), (2, 1, True), (3, 3, False)]),
        ([None, 0.1, None], [(2, 1, False), (1, None, False), (3, None, False)]),
        ([0.0, None], [(1, 1, False), (2, None, False)]),
        ([0.1 + 0.2, 0.3], [(1, 1, False), (2, 2, False)]),  # in full precision
    ],
)
def test_it_ranks_by_the_primary_measure_and_equal_runs_share_a_rank(
    mapping: Mapping, values: list[float | None], expected: list[Place]
) -> None:
    assert places(mapping, values) == expected


def test_it_tells_the_distance_to_the_best(mapping: Mapping) -> None:
    board = leaderboard(make_benchmark(mapping, [0.25, 0.75, None]))
    assert board.primary == "nDCG@10"
    assert [row.behind for row in board.rows] == [0.0, -0.5, None]
    assert board.best is not None
    assert board.best.run.run_order == 2


def test_what_is_to_be_known_of_every_run_is_told_once(mapping: Mapping, admin_client: Client) -> None:
    benchmark = make_benchmark(mapping, [0.25, None, 0.75])
    benchmark.runs.update(warnings=["Short lists."])
    benchmark.runs.filter(run_order=3).update(warnings=["Short lists.", "Slow."])
    page = admin_client.get(results_url(benchmark)).content.decode()
    for told in (text_of(benchmark), page):
        assert told.count("Short lists.") == told.count("Every run: Short lists.") == 1
        assert told.count("Slow.") == 1


def test_as_text_it_has_the_number_that_commands_take_beside_the_rank(mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [0.25, None, 0.75])
    about, head, *rows = text_of(benchmark).splitlines()
    assert about.endswith("; benchmark means")
    assert head.split()[:3] == ["rank", "run", "label"]
    assert [row.split()[:2] for row in rows] == [["1", "3"], ["2", "1"], ["–", "2"]]
    for row in rows:
        number = int(row.split()[1])
        assert find_run(benchmark, number).label in row
        assert row.index(find_run(benchmark, number).label) == head.index("label")


def test_as_text_equal_means_share_a_rank_as_on_the_page(mapping: Mapping) -> None:
    _, _, *rows = text_of(make_benchmark(mapping, [0.2, 0.3, 0.2, 0.1])).splitlines()
    assert [row.split()[:2] for row in rows] == [["1", "2"], ["2=", "1"], ["2=", "3"], ["4", "4"]]


def test_its_page_has_the_number_that_commands_take_beside_the_rank(admin_client: Client, mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [0.25, None, 0.75], name="lower case")
    page = admin_client.get(results_url(benchmark)).content.decode()
    rows = re.findall(r'<td class="bb-number">(?:<input[^>]*> )?(\S+)</td>\s*<td class="bb-number">(\d+)</td>', page)
    assert rows == [("1", "3"), ("2", "1"), ("–", "2")]
    assert ">lower case</" in re.sub(r"<h2>.*?</h2>", "", page)  # the name in the top line, as it is written


def test_without_a_value_there_is_no_best_and_no_figure(mapping: Mapping) -> None:
    board = leaderboard(make_benchmark(mapping, [None]))
    assert board.best is None
    assert quality_and_cost(board) is None


def test_a_run_that_did_not_complete_shows_no_means(mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [0.5], status="cancelled")
    benchmark.runs.update(status=Run.Status.CANCELLED)
    row = leaderboard(benchmark).rows[0]
    assert (row.values, row.rank, row.provisional) == ({}, None, False)


def test_the_other_measures_follow_the_cutoff(mapping: Mapping) -> None:
    benchmark = make_benchmark(mapping, [0.5])
    assert measures_at(benchmark, 10) == ["P@10", "R@10", "RR", "AP"]
    assert measures_at(benchmark, 5) == ["nDCG@5", "P@5", "R@5", "RR", "AP"]


def test_while_it_runs_means_are_provisional_and_gone_when_cancelled(transactional_db: None, settings: Any) -> None:
    settings.BENCHBENCH_BATCH_SECONDS = 0.001  # several batches
    library = make_library(documents=12, queries=16)
    benchmark = create_benchmark(library, name="both", matrix={"search_modes": ["dense", "sparse"]})
    operation = launch(benchmark)
    before = leaderboard(benchmark)
    assert [row.so_far for row in before.rows] == [0, 0]
    batch = operation.batches.order_by("ordinal").first()
    assert batch is not None
    perform_batch(batch.pk, owner="test")
    during = leaderboard(benchmark)
    assert all(row.provisional and row.so_far and row.so_far < 16 for row in during.rows)
    assert all(row.rank and row.values["nDCG@10"] is not None for row in during.rows)
    cancel_operation(operation)
    benchmark.refresh_from_db()
    assert all(row.values == {} and not row.provisional for row in leaderboard(benchmark).rows)
    wait(launch(benchmark))
    benchmark.refresh_from_db()
    after = leaderboard(benchmark)
    assert all(row.rank and not row.provisional for row in after.rows)


def test_its_figure_has_a_point_for_every_run_with_a_value(mapping: Mapping) -> None:
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
