"""A dataset's benchmarks over time."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.benchmarks.gates.baselines import approve
from apps.benchmarks.models import Benchmark, Evaluation
from apps.mappings.models import Mapping
from apps.results.comparison.history import history, history_figure
from tests.factories import add_version, make_benchmark
from tests.results.test_pages import results_url, text_of


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


def finish(mapping: Mapping, name: str, *values: float | None, days_ago: int) -> Benchmark:
    return make_benchmark(mapping, values, name=name, completed_at=timezone.now() - timedelta(days=days_ago))


def page_of(mapping: Mapping) -> str:
    return reverse("admin:dataset_history", args=[mapping.dataset_id])


def test_it_holds_the_best_run_of_each_finished_benchmark_by_its_truth(mapping: Mapping, root: User) -> None:
    finish(mapping, "second", 0.4, 0.6, None, days_ago=2)
    finish(mapping, "first", 0.5, days_ago=3)
    make_benchmark(mapping, [0.9], name="at work", status="running")
    mapping.dataset_version = add_version(mapping.dataset)
    mapping.save()
    finish(mapping, "third", 0.3, days_ago=1)
    shown = history(mapping.dataset, root)
    found = [(point.benchmark.name, point.value, point.truth) for point in shown.points]
    assert found == [("first", 0.5, "v1"), ("second", 0.6, "v1"), ("third", 0.3, "v2")]
    assert shown.points[1].run.run_order == 2
    by_rr = history(mapping.dataset, root, measure="RR")
    assert [point.value for point in by_rr.points] == [0.25, 0.3, 0.15]
    assert history(mapping.dataset, root, measure="nonsense").measure == "nDCG@10"


def test_what_was_measured_before_a_mapping_was_resolved_anew_is_another_truth(mapping: Mapping, root: User) -> None:
    for name, mark, days_ago in (("old", "a1b2c3d4", 2), ("new", "0f0f0f0f", 1)):
        made = finish(mapping, name, 0.5, days_ago=days_ago)
        Evaluation.objects.filter(run__benchmark=made).update(truth_hash=mark)
    points = history(mapping.dataset, root).points
    assert [point.truth for point in points] == ["v1, resolved as a1b2c3", "v1, resolved as 0f0f0f"]


def test_the_best_run_is_not_sought_by_a_measure_that_falls_as_runs_improve(mapping: Mapping, root: User) -> None:
    benchmark = finish(mapping, "one", 0.5, days_ago=1)
    benchmark.measures = [*benchmark.measures, "FirstRelevant@10"]
    benchmark.save()
    shown = history(mapping.dataset, root, measure="FirstRelevant@10")
    assert shown.measure == "nDCG@10"
    assert "FirstRelevant@10" not in shown.measures


def test_its_figure_links_points_to_benchmarks_and_draws_current_baselines_in(mapping: Mapping, root: User) -> None:
    old, new = finish(mapping, "old", 0.5, days_ago=3), finish(mapping, "new", 0.7, days_ago=1)
    for benchmark, name in ((old, "main"), (new, "main"), (old, "lexical")):
        approve(benchmark.runs.get(), name=name, reason="Because.", by=root)
    shown = history(mapping.dataset, root)
    assert [(line.baseline.name, line.value) for line in shown.lines] == [("lexical", 0.5), ("main", 0.7)]
    assert [point.baselines for point in shown.points] == [["lexical"], ["main"]]
    figure = history_figure(shown)
    assert figure is not None
    [trace] = figure["data"]
    assert list(trace["customdata"]) == [results_url(old), results_url(new)]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["lexical (v1) .5000", "main (v1) .7000"]


def test_values_through_other_mappings_and_policies_have_another_colour(mapping: Mapping, root: User) -> None:
    finish(mapping, "one", 0.5, days_ago=2)
    make_benchmark(mapping, [0.6], name="two", empty_queries="skip", completed_at=timezone.now())
    figure = history_figure(history(mapping.dataset, root))
    assert figure is not None
    assert [trace["name"] for trace in figure["data"]] == ["v1", "v1, empty queries skipped"]
    assert len({trace["marker"]["color"] for trace in figure["data"]}) == 2


def test_the_page_shows_both_and_costs_the_same_for_many(admin_client: Client, mapping: Mapping, root: User) -> None:
    assert "Make the first benchmark" in text_of(admin_client.get(page_of(mapping)))
    assert (
        page_of(mapping)
        in admin_client.get(reverse("admin:datasets_dataset_change", args=[mapping.dataset_id])).content.decode()
    )
    costs = []
    for number in range(1, 13):
        benchmark = finish(mapping, f"benchmark {number}", 0.5, days_ago=number)
        approve(benchmark.runs.get(), name=f"baseline {number}", reason=f"Reason {number}.", by=root)
        with CaptureQueriesContext(connection) as captured:
            page = text_of(admin_client.get(page_of(mapping)))
        costs.append(len(captured))
    assert costs[2] == costs[-1] <= 20
    for said in ("benchmark 7", "baseline 7", "Reason 7.", "by root"):
        assert said in page


def test_what_the_user_may_not_see_is_not_in_it(client: Client, mapping: Mapping, root: User) -> None:
    hidden = finish(mapping, "hidden", 0.9, days_ago=1)
    approve(hidden.runs.get(), name="secret", reason="Because.", by=root)
    Benchmark.objects.update(owner=root)
    ada = User.objects.create_user("ada", is_staff=True)
    shown = history(mapping.dataset, ada)
    assert (shown.points, shown.lines) == ([], [])
