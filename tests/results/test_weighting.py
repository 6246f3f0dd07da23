"""Benchmarks whose means are weighted by demand: their numbers, their names, and what they are not compared with."""

import io
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.urls import reverse
from scipy import stats

from apps.datasets.models import Query
from apps.datasets.versions import choose_weighting
from apps.execution.defining.creating import BenchmarkError, BenchmarkOptions
from apps.execution.defining.foreseeing import find_prior
from apps.judging.question import describe_weighting
from apps.mappings.models import Mapping
from apps.records.comparability import find_differences
from apps.records.measuring.batch_values import MeasuredValues, SearchedValues, Ties
from apps.records.measuring.slicing import compute_means, load_slicing
from apps.records.models import Benchmark, Evaluation
from apps.results.comparison.axes import compute_effects
from apps.results.comparison.history import load_history
from apps.results.comparison_report import build_report
from apps.results.exporters.documents import render_text, write_latex, write_markdown
from apps.results.exporters.results_json import build_results
from apps.results.exporters.tables import write_csv, yield_runs
from apps.results.triage.by_slice import load_run_slices
from apps.verdicts.comparing import IncomparableError, compare_runs
from apps.verdicts.coverage import load_coverage
from apps.verdicts.describing import compare_slices, summarise_measures
from apps.verdicts.gates.gating import gate
from apps.verdicts.gates.reports import render_markdown
from apps.verdicts.gates.rules import read_rules
from apps.verdicts.migrating import build_migration
from apps.verdicts.ranked_runs import load_leaderboard
from apps.verdicts.sentences import build_verdict
from benchbench.ir.statistics.significance import compare
from tests.benchmarks.gated import GOOD, POOR, make_gated, pinned, search
from tests.benchmarks.imported import imported, make_judged, means_of, write
from tests.factories import make_round
from tests.site import results_url, text_of

BY_DEMAND = "weighted by demand"
pytestmark = pytest.mark.django_db


@pytest.fixture
def mapping(db: None) -> Mapping:
    """The queries of `make_gated`: q01 has a third of the demand, and is answered alike by GOOD and POOR."""
    gated = make_gated()
    for number, query in enumerate(Query.objects.order_by("key")):
        query.weight = 1 + number % 3
        query.save()
    Query.objects.filter(key="q01").update(weight=20)
    return gated


def read(benchmark: Benchmark) -> tuple[np.ndarray, np.ndarray, list[Evaluation]]:
    """Return the values of nDCG@10, (runs, queries), the weights and the evaluations."""
    rows = list(Evaluation.objects.filter(run__benchmark=benchmark).order_by("run__run_order"))
    weights = dict(Query.objects.values_list("pk", "weight"))
    return (
        np.array([row.get_column("nDCG@10") for row in rows]),
        np.array([weights[q] for q in rows[0].query_ids]),
        rows,
    )


def test_means_everywhere_are_weighted_and_named(mapping, admin_user):
    benchmark = search(mapping, POOR, GOOD, weighting="demand")
    values, weights, (poor, good) = read(benchmark)
    expected = [np.average(row, weights=weights) for row in values]
    assert [row.means["nDCG@10"] for row in (poor, good)] == pytest.approx(expected)
    assert abs(expected[0] - values[0].mean()) > 0.05
    assert poor.policies == {"unresolved": "count", "empty_queries": "zero", "weighting": "demand"}
    assert load_leaderboard(benchmark).title == "nDCG@10, weighted by demand"
    slicing = load_slicing(benchmark, poor)
    hard = slicing.find("slice: hard")
    assert hard is not None
    inside = np.average(values[0][hard.members], weights=weights[hard.members])
    assert compute_means(poor, slicing, hard, ["nDCG@10"])["nDCG@10"] == pytest.approx(inside)
    assert load_leaderboard(benchmark, within="slice: hard").in_run_order[0].values["nDCG@10"] == pytest.approx(inside)
    sliced = load_run_slices(poor.run)
    assert sliced.weighting == "demand"
    assert next(row for row in sliced.slices if row.name == hard.name).metrics_flat["ndcg@10"] == pytest.approx(inside)
    coverage = {row.name: row for row in load_coverage(poor)}
    assert coverage["nDCG@10"].value == pytest.approx(expected[0])
    result = weights[values[0] > 0].sum() / weights.sum()  # the first judged document of the others is the relevant one
    assert coverage["nDCG@10"].condensed == pytest.approx(result)
    assert build_results(benchmark).summary.best_primary_metric == pytest.approx(expected[1])
    [point] = load_history(mapping.dataset, admin_user).points
    assert (point.value, point.truth) == (pytest.approx(expected[1]), "v1, weighted by demand")
    prior = find_prior(mapping, admin_user)
    assert prior is not None
    assert (prior.means_name, prior.deviation) == (BY_DEMAND, pytest.approx(deviation(values, weights)))


def deviation(values: np.ndarray, weights: np.ndarray) -> float:
    d, share = values[1] - values[0], weights / weights.sum()
    residuals = share * (d - np.average(d, weights=weights))
    return float(len(d) * np.sqrt((residuals**2).sum() / (len(d) - 1)))


def test_verdict_is_that_of_weighted_values(mapping):
    benchmark = search(mapping, POOR, GOOD, weighting="demand")
    values, weights, _ = read(benchmark)
    result = compare_runs(benchmark.runs.all())
    assert result.comparison == compare(values, seed=benchmark.seed, weights=weights)
    (pair,) = result.comparison.pairs
    better = weights[values[1] > values[0]].sum() / weights.sum()
    assert (pair.worsened, pair.improved) == (pytest.approx(better), 0)
    sentences = build_verdict(result)
    share = f"{100 * better:.1f} %"
    assert sentences.shares == (
        f"With top 10 instead of top 20, 0.0 % of demand improved, {share} got worse by nDCG@10."
    )
    assert sentences.family.startswith("nDCG@10, weighted by demand, of one pair")
    report = build_report(result)
    assert (report.weighting, report.shares, report.notes[0]) == ("demand", sentences.shares, sentences.shares)
    assert report.effective_queries == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert report.differences[0].worsened == pytest.approx(better)
    means = {row.measure: row.means for row in summarise_measures(result)}
    assert means["nDCG@10"] == pytest.approx([np.average(row, weights=weights) for row in values])
    for row in compare_slices(result):
        inside = row.slice.members
        assert row.means[0] == pytest.approx(np.average(values[0][inside], weights=weights[inside]))
    (effect,) = compute_effects(result)
    assert effect.difference == pytest.approx(np.average(values[1] - values[0], weights=weights))


def test_migration_is_weighted_and_named(mapping):
    benchmark = search(mapping, POOR, GOOD, weighting="demand")
    values, weights, _ = read(benchmark)
    result = compare_runs(benchmark.runs.all())
    migration = build_migration(result, 0.05)
    (pair,) = result.comparison.pairs
    margin = stats.t.ppf(0.95, result.comparison.effective - 1) * pair.standard_error
    assert (migration.difference, migration.lower) == pytest.approx((-pair.difference, -pair.difference - margin))
    assert "the difference in nDCG@10, weighted by demand, is" in migration.sentence
    same = ((values[0] == 1) == (values[1] == 1)) & ((values[0] == values[1]) | (values[0] < 1) & (values[1] < 1))
    assert migration.same_first == pytest.approx(weights[same].sum() / weights.sum())


def test_equal_weights_say_queries_and_change_nothing(mapping):
    Query.objects.update(weight=4)
    weighted = search(mapping, POOR, GOOD, name="weighted", weighting="demand")
    plain = search(mapping, POOR, GOOD, name="plain")
    for one, another in zip(read(weighted)[2], read(plain)[2], strict=True):
        assert (one.means, one.query_count) == (another.means, another.query_count)
    compared, again = (compare_runs(benchmark.runs.all()) for benchmark in (weighted, plain))
    assert compared.comparison == again.comparison
    shares = "With top 10 instead of top 20, 0.0 % of queries improved, 81.0 % got worse by nDCG@10."
    assert build_verdict(compared).shares == build_verdict(again).shares == shares
    assert read(plain)[2][0].policies == {"unresolved": "count", "empty_queries": "zero"}


def test_runs_under_different_weighting_are_not_compared(mapping, admin_user):
    weighted = search(mapping, GOOD, name="weighted", weighting="demand")
    plain = search(mapping, GOOD, name="plain")
    runs = [weighted.runs.get(), plain.runs.get()]
    (refusal,) = find_differences(runs).refusals
    assert refusal.startswith("They treat the weights of queries differently: ")
    with pytest.raises(IncomparableError, match="the weights of queries"):
        compare_runs(runs)
    baseline = pinned(plain.runs.get())
    rules = read_rules("against_baseline: {ndcg@10: {may_lose: 0.1}}")
    (verdict,) = gate(weighted, rules=rules, baseline=baseline).verdicts
    assert (verdict.outcome, "the weights of queries" in verdict.checks[0].note) == ("undecided", True)
    assert len({point.truth for point in load_history(mapping.dataset, admin_user).points}) == 2


def test_gates_hold_weighted_means_under_their_name(mapping):
    benchmark = search(mapping, POOR, GOOD, weighting="demand")
    values, weights, _ = read(benchmark)
    baseline = pinned(benchmark.runs.get(run_order=1))
    rules = read_rules("{floors: {ndcg@10: 0.5}, against_baseline: {ndcg@10: {must_gain: 0.01}}}")
    result = gate(benchmark.runs.get(run_order=2), rules=rules, baseline=baseline)
    floor, change, *_ = result.verdicts[0].checks
    assert (floor.name, floor.value) == (f"nDCG@10, {BY_DEMAND}", pytest.approx(np.average(values[1], weights=weights)))
    assert change.name == f"nDCG@10 against the baseline, {BY_DEMAND}"
    assert change.value == pytest.approx(np.average(values[1] - values[0], weights=weights))
    assert "every query weighs its demand" in render_markdown(result)


def test_exports_name_weighted_means(mapping):
    benchmark = search(mapping, POOR, GOOD, weighting="demand")
    version = benchmark.dataset_version
    assert render_text(benchmark).splitlines()[0].endswith(f"benchmark means, {BY_DEMAND}")
    for write_document in (write_markdown, write_latex):
        document = "".join(write_document(benchmark, version))
        assert f"Means are {BY_DEMAND}" in document
        assert "of demand improved" in document
    header, *rows = "".join(write_csv(yield_runs)(benchmark, version)).splitlines()
    position = header.split(",").index("weighting")
    assert {row.split(",")[position] for row in rows} == {"demand"}
    results = build_results(benchmark)
    assert {results.weighting, *(run.weighting for run in results.runs)} == {"demand"}


def test_pages_name_weighted_means(admin_client, mapping):
    benchmark = search(mapping, POOR, GOOD, weighting="demand")
    first, second = benchmark.runs.order_by("run_order")
    compared = f"{reverse('admin:run_compare')}?run={first.pk}&run={second.pk}"
    query = Query.objects.get(key="q01")
    for address in (
        reverse("admin:index"),
        results_url(benchmark),
        results_url(benchmark, "verdict"),
        compared,
        f"{compared}&panel=measures",
        f"{compared}&panel=slices",
        reverse("admin:benchmarks_run_change", args=[first.pk]),
        reverse("admin:benchmarks_run_changelist"),
        reverse("admin:benchmarks_benchmark_changelist"),
        reverse("admin:datasets_dataset_change", args=[mapping.dataset_id]),
        reverse("admin:datasets_query_change", args=[query.pk]),
        reverse("admin:dataset_history", args=[mapping.dataset_id]),
    ):
        assert BY_DEMAND in text_of(admin_client.get(address)), address
    assert "of demand improved" in text_of(admin_client.get(results_url(benchmark, "verdict")))
    assert "1–20 of demand" in text_of(
        admin_client.get(reverse("admin:datasets_dataset_change", args=[mapping.dataset_id]))
    )
    assert "Weight 20" in text_of(admin_client.get(reverse("admin:datasets_query_change", args=[query.pk])))
    plain = search(mapping, POOR, GOOD, name="plain")
    for address in (results_url(plain), results_url(plain, "verdict")):
        assert BY_DEMAND not in text_of(admin_client.get(address)), address


def test_sums_of_batches_give_the_weighted_mean():
    """Provisional means are total sums / total divisors over batches."""
    rng = np.random.default_rng(4)
    values, weights = rng.random((2, 12)), rng.integers(1, 9, 12).astype(float)
    values[1, 2] = np.nan
    missing, in_means = np.arange(12) == 7, np.arange(12) != 9
    pieces = [
        SearchedValues(
            list(range(12))[segment],
            {"run": MeasuredValues(values[:, segment], missing[segment])},  # type: ignore[dict-item]
            {"run": []},  # type: ignore[dict-item]
            {"run": Ties()},  # type: ignore[dict-item]
            in_means[segment],
            weights[segment],
        ).compute_shares()["run"]
        for segment in (slice(0, 5), slice(5, 12))
    ]
    mean = np.sum([piece.sums for piece in pieces], axis=0) / np.sum([piece.valued for piece in pieces], axis=0)
    counts = ~missing & in_means
    rows = [np.average(row[ok], weights=weights[ok]) for row in values for ok in [counts & ~np.isnan(row)]]
    assert mean == pytest.approx(rows)


def test_default_weighting_follows_the_weights(mapping, admin_client):
    assert choose_weighting(mapping.dataset_version) == "demand"
    Query.objects.update(weight=3)
    assert choose_weighting(mapping.dataset_version) == "equal"
    with pytest.raises(BenchmarkError, match="weighting is 'heavy'; it must be one of: equal, demand"):
        BenchmarkOptions(name="x", matrix={}, weighting="heavy").check()


RUN = "q1 Q0 a 1 2 t\nq2 Q0 b 1 2 t\nq2 Q0 a 2 1 t\nq3 Q0 b 1 1 t\n"


@pytest.mark.parametrize("weighting", ["", "equal"])
def test_imported_runs_are_weighted_too(weighting, tmp_path):
    dataset = make_judged()
    Query.objects.filter(key="q2").update(weight=6)
    path = write(tmp_path / "a.run", RUN)
    options: dict[str, Any] = {"weighting": weighting} if weighting else {}
    importing = imported(dataset, path, name="elsewhere", **options)
    ((run, _),) = importing.runs
    assert importing.benchmark.weighting == (weighting or "demand")
    evaluation = Evaluation.objects.get(run=run)
    weights = [dict(Query.objects.values_list("pk", "weight"))[key] for key in evaluation.query_ids]
    rr = evaluation.get_column("RR")
    assert rr.tolist() == [1, 0.5, 0]
    assert means_of(run)["RR"] == pytest.approx(np.average(rr, weights=None if weighting else weights))


def test_command_chooses_the_weighting(tmp_path):
    make_judged()
    Query.objects.filter(key="q2").update(weight=6)
    path = write(tmp_path / "a.run", RUN)
    for weighting, name in (("equal", "plain"), ("demand", "weighted")):
        out = io.StringIO()
        call_command("import_run", str(path), dataset="questions", name=name, weighting=weighting, stdout=out)
        assert (BY_DEMAND in out.getvalue()) == (weighting == "demand")
        assert Benchmark.objects.get(name=name).weighting == weighting


def test_judging_rounds_say_that_they_count_queries_alike(mapping):
    weighted, plain = (search(mapping, POOR, GOOD, name=name, weighting=name) for name in ("demand", "equal"))
    assert "every query counts alike" in describe_weighting(make_round(weighted.runs.get(run_order=1)))
    assert describe_weighting(make_round(plain.runs.get(run_order=1))) == ""
