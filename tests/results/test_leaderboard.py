"""The runs of a benchmark by their values, and a dataset's benchmarks over time."""

import json
import re
from datetime import timedelta

import plotly.graph_objects as go
import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone

from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.operations.launching import cancel_operation
from apps.operations.working import perform_batch, wait
from apps.records.finding import find_run
from apps.records.models import Benchmark, Evaluation, GateOutcome, Run, StageList
from apps.results.charts import plot_quality
from apps.results.comparison.history import load_history, plot_history
from apps.results.exporters.documents import render_text
from apps.results.leaderboard.parallel import plot_parallel
from apps.verdicts.configurations import build_labels
from apps.verdicts.gates.baselines import approve
from apps.verdicts.ranked_runs import UNFINISHED, load_leaderboard, select_measures
from benchbench.decimals import counted
from tests.created import create_benchmark, finish, run_benchmark
from tests.factories import add_version, make_benchmark
from tests.library import make_library
from tests.pages import one_line
from tests.site import count_statements, results_url
from tests.site import text_of as page_text

Standing = tuple[int, int | None, bool]


def places(mapping: Mapping, values: list[float | None]) -> list[Standing]:
    """Return (run order, rank, tied) of every row of a benchmark whose runs have these means."""
    board = load_leaderboard(make_benchmark(mapping, values))
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
def test_equal_runs_share_a_rank(mapping, values, expected):
    assert places(mapping, values) == expected


def test_rows_show_the_distance_to_the_best(mapping):
    board = load_leaderboard(make_benchmark(mapping, [0.25, 0.75, None]))
    assert board.primary == "nDCG@10"
    assert [row.behind for row in board.rows] == [0.0, -0.5, None]
    assert board.best.run.run_order == 2


def test_warning_common_to_all_runs_is_shown_once(mapping, admin_client):
    benchmark = make_benchmark(mapping, [0.25, None, 0.75])
    benchmark.runs.update(warnings=["Short lists."])
    benchmark.runs.filter(run_order=3).update(warnings=["Short lists.", "Slow."])
    page = admin_client.get(results_url(benchmark)).content.decode()
    for message in (render_text(benchmark), page):
        assert message.count("Short lists.") == message.count("All runs: Short lists.") == 1
        assert message.count("Slow.") == 1


def test_text_shows_the_run_number_next_to_the_rank(mapping):
    benchmark = make_benchmark(mapping, [0.25, None, 0.75])
    about, head, *rows = render_text(benchmark).splitlines()
    assert about.endswith("; benchmark means")
    assert head.split()[:3] == ["rank", "run", "label"]
    assert [row.split()[:2] for row in rows] == [["1", "3"], ["2", "1"], ["–", "2"]]
    for row in rows:
        number = int(row.split()[1])
        assert find_run(benchmark, number).label in row
        assert row.index(find_run(benchmark, number).label) == head.index("label")


def test_text_gives_equal_means_the_same_rank(mapping):
    _, _, *rows = render_text(make_benchmark(mapping, [0.2, 0.3, 0.2, 0.1])).splitlines()
    assert [row.split()[:2] for row in rows] == [["1", "2"], ["2=", "1"], ["2=", "3"], ["4", "4"]]


def test_rows_have_the_names_of_the_verdict(admin_client, mapping):
    benchmark = make_benchmark(mapping, [0.3, 0.5, 0.6])
    for run, mode in zip(benchmark.runs.order_by("run_order"), ("dense", "dense", "sparse"), strict=True):
        Run.objects.filter(pk=run.pk).update(config=run.config | {"search_mode": mode})
    page = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk]))
    labels = {row["run"]: row["label"] for row in page.context["rows"]}
    assert list(labels.values()) == build_labels(list(labels))
    assert "run 2" in page.text.partition('id="rank-')[2], "two names that would be equal say which run is meant"


def test_page_shows_the_run_number_next_to_the_rank(admin_client, mapping):
    benchmark = make_benchmark(mapping, [0.25, None, 0.75], name="lower case")
    page = one_line(admin_client.get(results_url(benchmark)).content.decode())
    rank = r'<td class="bb-number">(?:<input[^>]*> ?)?(?:<span[^>]*>)?([\d–]+)(?:</span>)?</td>'
    rows = re.findall(rank + r'\s*<td class="bb-number">(\d+)</td>', page)
    assert rows == [("1", "3"), ("2", "1"), ("–", "2")]
    assert ">lower case</" in re.sub(r"<h2>.*?</h2>", "", page)  # the name in the top line, as it is written


def test_leaderboard_without_values_has_no_best_and_no_figure(mapping):
    board = load_leaderboard(make_benchmark(mapping, [None]))
    assert board.best is None
    assert plot_quality(board) is None


def test_a_run_that_did_not_complete_shows_no_means(mapping):
    benchmark = make_benchmark(mapping, [0.5], status="cancelled")
    benchmark.runs.update(status=Run.Status.CANCELLED)
    row = load_leaderboard(benchmark).rows[0]
    assert (row.values, row.rank, row.provisional) == ({}, None, False)


def test_the_other_measures_follow_the_cutoff(mapping):
    benchmark = make_benchmark(mapping, [0.5])
    assert select_measures(benchmark, 10) == ["P@10", "R@10", "RR", "AP"]
    assert select_measures(benchmark, 5) == ["nDCG@5", "P@5", "R@5", "RR", "AP"]


def test_running_means_are_provisional_and_removed_when_cancelled(transactional_db, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 0.001  # several batches
    library = make_library(documents=12, queries=16)
    benchmark = create_benchmark(library, name="both", matrix={"search_modes": ["dense", "sparse"]})
    operation = launch(benchmark)
    before = load_leaderboard(benchmark)
    assert [row.so_far for row in before.rows] == [0, 0]
    perform_batch(operation.batches.order_by("ordinal").first().pk, owner="test")
    during = load_leaderboard(benchmark)
    assert all(row.provisional and row.so_far and row.so_far < 16 for row in during.rows)
    assert all(row.rank and row.values["nDCG@10"] is not None for row in during.rows)
    cancel_operation(operation)
    benchmark.refresh_from_db()
    assert all(row.values == {} and not row.provisional for row in load_leaderboard(benchmark).rows)
    finish(benchmark)
    after = load_leaderboard(benchmark)
    assert all(row.rank and not row.provisional for row in after.rows)


def test_provisional_means_are_not_ranked_among_final_ones(transactional_db, settings, admin_client):
    """A benchmark whose dense run has completed is resumed for the other one."""
    settings.BENCHBENCH_BATCH_SECONDS = 0.001
    library = make_library(documents=12, queries=16)
    benchmark = finish(create_benchmark(library, name="both", matrix={"search_modes": ["dense", "sparse"]}))
    sparse = benchmark.runs.get(config__search_mode="sparse")
    sparse.evaluations.all().delete()
    StageList.objects.filter(source=sparse.source_id).delete()
    Run.objects.filter(pk=sparse.pk).update(status=Run.Status.PENDING)
    operation = launch(benchmark)
    perform_batch(operation.batches.order_by("ordinal").first().pk, owner="test")
    dense, provisional = load_leaderboard(benchmark).rows
    assert (dense.run.config["search_mode"], dense.rank, dense.provisional) == ("dense", 1, False)
    assert (provisional.run, provisional.rank, provisional.provisional) == (sparse, None, True)
    assert provisional.values["nDCG@10"] is not None
    assert provisional.unranked == UNFINISHED
    page = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
    assert page.count(UNFINISHED) == 1
    assert f"so far, {counted(provisional.so_far or 0, 'query')}" in page
    wait(operation)
    assert all(row.rank and not row.provisional for row in load_leaderboard(benchmark).rows)


def test_figure_has_a_point_for_each_run_with_values(mapping):
    figure = plot_quality(load_leaderboard(make_benchmark(mapping, [0.25, None, 0.75])))
    (trace,) = figure["data"]
    assert trace["name"] == "dense"
    assert list(zip(trace["x"], trace["y"], strict=True)) == [(30.0, 0.75), (10.0, 0.25)]
    assert trace["text"] == ["1. top 30", "2. top 10"]
    assert "type" not in figure["layout"]["xaxis"]
    assert figure["layout"]["xaxis"]["title"]["text"] == "ms per query (shared)"
    json.dumps(figure)
    go.Figure(figure)  # Plotly knows every key, and takes every value


def test_parallel_coordinates_lead_each_run_through_its_settings(mapping):
    benchmark = make_benchmark(mapping, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, None])
    assert plot_parallel(load_leaderboard(benchmark)) is None, "only the depth varies"
    for run in benchmark.runs.all():
        mode = "dense" if run.run_order % 2 else "sparse"
        run.config |= {"search_mode": mode, "top_k": 10 * (run.run_order // 4 + 1)}
        run.save()
    figure = plot_parallel(load_leaderboard(benchmark))
    go.Figure(figure)
    *lines, modes, depths, ends = figure["data"]
    assert dict(zip(modes["text"], modes["customdata"], strict=True)) == {
        "lexical": [6, 4, 2],
        "dense": [5, 3, 1],
    }
    assert dict(zip(depths["text"], map(len, depths["customdata"]), strict=True)) == {"top 20": 3, "top 10": 3}
    assert [ends["text"], figure["layout"]["xaxis"]["ticktext"][-1]] == [[".2000", ".7000"], "nDCG@10"]
    ends_of_lines = sorted(height for trace in lines for height in trace["y"][2::4])
    assert ends_of_lines == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_far_apart_times_get_a_logarithmic_axis(mapping):
    benchmark = make_benchmark(mapping, [0.25, 0.75])
    benchmark.runs.filter(run_order=2).update(timing={"total_ms": 5000.0})
    axis = plot_quality(load_leaderboard(benchmark))["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert {"10", "5000"} <= set(axis["ticktext"])


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


def finished(mapping: Mapping, name: str, *values: float | None, days_ago: int) -> Benchmark:
    return make_benchmark(mapping, values, name=name, completed_at=timezone.now() - timedelta(days=days_ago))


def page_of(mapping: Mapping) -> str:
    return reverse("admin:dataset_history", args=[mapping.dataset_id])


def test_history_holds_best_finished_runs_with_their_truth(mapping, root):
    finished(mapping, "second", 0.4, 0.6, None, days_ago=2)
    finished(mapping, "first", 0.5, days_ago=3)
    make_benchmark(mapping, [0.9], name="at work", status="running")
    mapping.dataset_version = add_version(mapping.dataset)
    mapping.save()
    finished(mapping, "third", 0.3, days_ago=1)
    history = load_history(mapping.dataset, root)
    hits = [(point.benchmark.name, point.value, point.truth) for point in history.points]
    assert hits == [("first", 0.5, "v1"), ("second", 0.6, "v1"), ("third", 0.3, "v2")]
    assert history.points[1].run.run_order == 2
    by_rr = load_history(mapping.dataset, root, measure="RR")
    assert [point.value for point in by_rr.points] == [0.25, 0.3, 0.15]
    assert load_history(mapping.dataset, root, measure="nonsense").measure == "nDCG@10"


def test_resolving_the_mapping_again_starts_another_truth(mapping, root):
    for name, mark, days_ago in (("old", "a1b2c3d4", 2), ("new", "0f0f0f0f", 1)):
        benchmark = finished(mapping, name, 0.5, days_ago=days_ago)
        Evaluation.objects.filter(run__benchmark=benchmark).update(truth_hash=mark)
    points = load_history(mapping.dataset, root).points
    assert [point.truth for point in points] == ["v1, resolved as a1b2c3", "v1, resolved as 0f0f0f"]


def test_single_value_is_no_chart(admin_client, mapping, root):
    finished(mapping, "one", 0.5, days_ago=1)
    page = page_text(admin_client.get(page_of(mapping)))
    assert "One value so far: a chart follows with the second benchmark." in page
    assert 'data-chart="figure"' not in admin_client.get(page_of(mapping)).text
    finished(mapping, "two", 0.6, days_ago=0)
    assert 'data-chart="figure"' in admin_client.get(page_of(mapping)).text


def test_history_ignores_measures_that_decrease_with_quality(mapping, root):
    benchmark = finished(mapping, "one", 0.5, days_ago=1)
    benchmark.measures = [*benchmark.measures, "FirstRelevant@10"]
    benchmark.save()
    history = load_history(mapping.dataset, root, measure="FirstRelevant@10")
    assert history.measure == "nDCG@10"
    assert "FirstRelevant@10" not in history.measures


def test_history_figure_links_benchmarks_and_draws_current_baselines(mapping, root):
    old, new = finished(mapping, "old", 0.5, days_ago=3), finished(mapping, "new", 0.7, days_ago=1)
    for benchmark, name in ((old, "main"), (new, "main"), (old, "lexical")):
        approve(benchmark.runs.get(), name=name, reason="Because.", by=root)
    history = load_history(mapping.dataset, root)
    assert [(line.baseline.name, line.value) for line in history.lines] == [("lexical", 0.5), ("main", 0.7)]
    assert [point.baselines for point in history.points] == [["lexical"], ["main"]]
    figure = plot_history(history)
    [trace] = figure["data"]
    assert list(trace["customdata"]) == [results_url(old), results_url(new)]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["lexical (v1) .5000", "main (v1) .7000"]


def test_history_marks_gates_changes_and_later_versions(admin_client, mapping, root):
    created = [
        finished(mapping, name, value, days_ago=days) for name, value, days in (("old", 0.5, 3), ("new", 0.7, 1))
    ]
    for benchmark, code, content in zip(created, ("a1b2c3d4", "b2c3d4e5"), ("0123456789", "9876543210"), strict=True):
        index = {"name": "MiniLM", "version": 1, "content": content}
        benchmark.runs.update(provenance={"index": index, "made_by": [{"git_revision": code}]})
    missed = {"name": "nDCG@10", "required": "≥ .6000", "observed": ".5000", "outcome": "failed", "note": ""}
    GateOutcome.objects.create(run=created[0].runs.get(), rules={}, outcome="failed", checks=[missed], by=root)
    old = Evaluation.objects.get(run__benchmark=created[0])
    old.pk, old.dataset_version, old.means = None, add_version(mapping.dataset), {"nDCG@10": 0.8}
    old.save(force_insert=True)
    history = load_history(mapping.dataset, root)
    assert [(point.value, point.truth, point.gate and point.gate.outcome) for point in history.points] == [
        (0.5, "v1", "failed"),
        (0.7, "v1", None),
        (0.8, "v2", None),
    ]
    assert [point.changes for point in history.points] == [(), ("code b2c3d4e", "index MiniLM v1 (987654)"), ()]
    figure = plot_history(history)
    assert [trace["marker"]["symbol"] for trace in figure["data"]] == [["x", "circle"], ["circle"]]
    assert [trace["customdata"] for trace in figure["data"]] == [
        [results_url(created[0]), results_url(created[1])],
        [f"{results_url(created[0])}?version=2"],
    ]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["code index"]
    page = page_text(admin_client.get(page_of(mapping)))
    assert "failed nDCG@10" in page
    assert "re-scored" in page


def test_values_through_other_mappings_and_policies_have_another_colour(mapping, root):
    finished(mapping, "one", 0.5, days_ago=2)
    make_benchmark(mapping, [0.6], name="two", empty_queries="skip", completed_at=timezone.now())
    figure = plot_history(load_history(mapping.dataset, root))
    assert [trace["name"] for trace in figure["data"]] == ["v1", "v1, empty queries skipped"]
    assert len({trace["marker"]["color"] for trace in figure["data"]}) == 2


def test_history_page_shows_points_and_baselines_at_constant_cost(admin_client, mapping, root):
    assert "Make the first benchmark" in page_text(admin_client.get(page_of(mapping)))
    remote = admin_client.get(reverse("admin:datasets_dataset_change", args=[mapping.dataset_id]))
    assert page_of(mapping) in remote.content.decode()
    costs = []
    for number in range(1, 13):
        benchmark = finished(mapping, f"benchmark {number}", 0.5, days_ago=number)
        approve(benchmark.runs.get(), name=f"baseline {number}", reason=f"Reason {number}.", by=root)
        costs.append(count_statements(lambda: admin_client.get(page_of(mapping))))
    page = page_text(admin_client.get(page_of(mapping)))
    assert costs[2] == costs[-1] <= 20
    for message in ("benchmark 7", "baseline 7", "Reason 7.", "by root"):
        assert message in page


def test_history_excludes_objects_hidden_from_the_user(client, mapping, root):
    approve(finished(mapping, "hidden", 0.9, days_ago=1).runs.get(), name="secret", reason="Because.", by=root)
    Benchmark.objects.update(owner=root)
    history = load_history(mapping.dataset, User.objects.create_user("ada", is_staff=True))
    assert (history.points, history.lines) == ([], [])


def test_equal_runs_are_one_row_that_opens(admin_client, db):
    """Two depths return all 30 documents in one order; the lists of the other mode differ."""
    matrix = {"search_modes": ["dense", "sparse"], "top_k_values": [100, 200], "k_values_for_metrics": [5, 10]}
    benchmark = run_benchmark(make_library(documents=30, queries=12), name="How deep?", matrix=matrix)
    response = admin_client.get(results_url(benchmark))
    rows = response.context["rows"]
    assert sorted(len(row["equal"]) for row in rows) == [1, 1]
    page = page_text(response)
    assert page.count("+ 1 equal The same list for every query; above: top 100. 2 top 200") == 1
    assert [row["row"].rank for row in rows] == [1, 3]
    assert re.findall(r"(\d)=", render_text(benchmark)) == ["1", "1", "3", "3"], "files have every run"

    StageList.objects.filter(source__runs=rows[0]["run"]).update(lengths=[30, 29])
    cache.clear()
    assert sorted(len(row["equal"]) for row in admin_client.get(results_url(benchmark)).context["rows"]) == [0, 0, 1]


def test_points_have_names_up_to_twelve(mapping):
    for runs, mode in ((12, "markers+text"), (13, "markers")):
        figure = plot_quality(load_leaderboard(make_benchmark(mapping, [0.5] * runs, name=f"of {runs}")))
        assert {trace["mode"] for trace in figure["data"]} == {mode}
