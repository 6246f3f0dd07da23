"""Runs held against each other, from their stored values."""

import numpy as np
import pytest

from apps.datasets.models import Judgment
from apps.mappings.models import Mapping, Resolution
from apps.records.models import Baseline, Evaluation, Run
from apps.results.comparison.highlights import describe_measures
from apps.results.comparison.page import list_choices
from apps.verdicts.comparing import ComparingError, IncomparableError, compare_runs
from apps.verdicts.describing import summarise_measures
from apps.verdicts.values import load_run_values
from benchbench.ir.statistics.resampling import mean_intervals
from benchbench.ir.statistics.significance import compare
from tests.factories import add_version, make_collection, make_mapping
from tests.results.compared import make_compared, make_queries, noisy
from tests.site import count_statements

VALUES = noisy([0.3, 0.5, 0.49], 40)


@pytest.fixture
def runs(db: None) -> list[Run]:
    return list(make_compared(make_queries(40), VALUES).runs.order_by("run_order"))


def test_it_compares_the_primary_measure_of_all_pairs(runs):
    result = compare_runs(runs)
    assert result.comparison == compare(VALUES, seed=42)
    assert (result.measure, result.is_tested, result.runs) == ("nDCG@10", True, tuple(runs))
    assert result.verdict.group == (1, 2)
    assert result.labels == ("top 10", "top 20", "top 30")


def test_the_order_in_which_runs_are_named_changes_nothing(runs):
    assert compare_runs(reversed(runs)).comparison == compare_runs(runs).comparison


def test_against_a_baseline_the_family_is_smaller(runs):
    result = compare_runs(runs, baseline=runs[0])
    assert result.comparison == compare(VALUES, seed=42, baseline=0)
    assert (result.reference, result.pinned) == (0, False)
    Baseline.objects.create(dataset=runs[0].benchmark.mapping.dataset, run=runs[0], reason="in production")
    assert compare_runs(runs, baseline=runs[0]).pinned


def test_a_failed_query_is_left_out_of_every_run(db):
    values = VALUES.copy()
    values[1, 3] = values[2, 7] = np.nan
    result = compare_runs(make_compared(make_queries(40), values).runs.all())
    assert (result.comparison.n, result.comparison.left_out) == (38, 2)
    assert result.comparison.means == pytest.approx(np.delete(values, [3, 7], axis=1).mean(axis=1))


def test_queries_skipped_by_the_policy_are_not_compared(db):
    mapping = make_queries(40)
    Judgment.objects.filter(query__key__in=["q0001", "q0005"]).update(grade=0)
    document = mapping.collection.documents.get()
    for judgment in Judgment.objects.all():
        Resolution.objects.create(mapping=mapping, judgment=judgment, document=document, outcome="resolved")
    result = compare_runs(make_compared(mapping, VALUES, empty_queries="skip").runs.all())
    assert (result.comparison.n, result.skipped) == (38, 2)
    assert result.comparison.means == pytest.approx(np.delete(VALUES, [1, 5], axis=1).mean(axis=1))


def test_queries_count_if_every_mapping_resolves_a_relevant_document(db):
    first = make_queries(40)
    library = make_collection("another library", [{"title": "On plums"}])
    mappings = [first, make_mapping(first.dataset, library, name="another")]
    for mapping, lost in zip(mappings, ["q0001", "q0005"], strict=True):
        document = mapping.collection.documents.get()
        for judgment in Judgment.objects.select_related("query"):
            is_lost = judgment.query.key == lost
            result = {"document": None, "outcome": "not_found"} if is_lost else {"document": document}
            Resolution.objects.create(mapping=mapping, judgment=judgment, **{"outcome": "resolved", **result})
    policies = {"unresolved": "drop", "empty_queries": "skip"}
    runs = [
        make_compared(mapping, VALUES[[position]], name=mapping.name, **policies).runs.get()
        for position, mapping in enumerate(mappings)
    ]
    for ordered in (runs, runs[::-1]):
        measured = {run.pk: run.evaluations.get() for run in ordered}
        read = load_run_values(ordered, measured)
        rows = [runs.index(run) for run in ordered]
        assert np.array_equal(read.values["nDCG@10"], np.delete(VALUES[rows], [1, 5], axis=1))
        assert read.query_ids.tolist() == np.delete(measured[ordered[0].pk].query_ids, [1, 5]).tolist()
        assert (read.skipped, len(read.query_ids)) == (2, 38)


def test_another_measure_is_described_and_not_tested(runs):
    result = compare_runs(runs, measure="P@5")
    assert not result.is_tested
    assert result.comparison.means == pytest.approx(VALUES.mean(axis=1) / 2)
    measures = {one.measure: one for one in summarise_measures(compare_runs(runs))}
    assert next(iter(measures)) == "nDCG@10"
    declared = mean_intervals(VALUES / 2, seed=42, resamples=2_000)
    assert measures["AP"].means == pytest.approx([one.mean for one in declared])
    assert measures["AP"].differences[2].mean == pytest.approx((VALUES[2] - VALUES[1]).mean() / 2)


def test_described_measures_cover_the_queries_that_every_run_answered(db):
    values = VALUES.copy()
    values[2, :2] = np.nan
    result = compare_runs(make_compared(make_queries(40), values).runs.all())
    primary = summarise_measures(result)[0]
    assert primary.means == pytest.approx(result.comparison.means)
    assert {one.n for one in primary.differences} == {result.comparison.n} == {38}


def test_sentence_on_measures_covers_the_queries_of_their_table(db):
    values = np.array([VALUES[0] + 0.01, VALUES[0]])
    values[0, :2], values[1, :2] = -5, np.nan  # the mean over its own queries is below the other's
    comparison = compare_runs(make_compared(make_queries(40), values).runs.all())
    assert describe_measures(comparison).startswith("top 10 has the best mean by each of ")


def test_measure_that_some_runs_lack_covers_common_queries(runs):
    for evaluation in Evaluation.objects.all():
        found_at = [None if index < evaluation.run.run_order else 2.0 for index in range(40)]
        evaluation.measures = [*evaluation.measures, "FirstRelevant@10"]
        evaluation.values = [*evaluation.values, found_at]
        evaluation.save()
    result = compare_runs(runs)
    (summary,) = [one for one in summarise_measures(result) if one.measure == "FirstRelevant@10"]
    assert ({one.n for one in summary.differences}, result.comparison.n) == ({40 - len(runs)}, 40)


def test_slices_are_compared_separately_and_small_ones_are_untested(db):
    runs = list(make_compared(make_queries(40, category=["billing"] * 35 + ["search"] * 5), VALUES).runs.all())
    result = compare_runs(runs, slice="category: billing")
    assert result.comparison == compare(VALUES[:, :35], seed=42)
    assert result.is_tested
    assert not compare_runs(runs, slice="category: search").is_tested
    evaluation = Evaluation.objects.get(run=runs[1])
    evaluation.values = [[*[None] * 26, *column[26:]] for column in evaluation.values]
    evaluation.save()
    assert not compare_runs(runs, slice="category: billing").is_tested, "nine queries have a value in every run"
    with pytest.raises(ComparingError, match='no slice "category: none"; choose one of category: billing'):
        compare_runs(runs, slice="category: none")


def test_comparison_of_two_benchmarks_uses_the_older_seed(db):
    mapping = make_queries(40)
    first = make_compared(mapping, VALUES[:2], name="first", seed=7)
    result = compare_runs([*make_compared(mapping, VALUES[2:], name="second", seed=8).runs.all(), *first.runs.all()])
    assert result.comparison == compare(VALUES, seed=7)
    assert result.labels == ('top 10 of "first"', "top 20", 'top 10 of "second"')
    assert compare_runs(result.runs, seed=9).comparison.seed == 9


def test_runs_with_different_ground_truth_are_rejected(db):
    one = make_compared(make_queries(40), VALUES[:1], name="one")
    second = make_compared(make_queries(40, name="others"), VALUES[:1], name="other")
    with pytest.raises(IncomparableError, match="They use different datasets") as caught:
        compare_runs([*one.runs.all(), *second.runs.all()])
    assert caught.value.comparability.refusals
    assert caught.value.status == 409


def test_it_compares_on_the_version_that_is_asked_for(runs):
    newer = add_version(runs[0].benchmark.mapping.dataset)
    Mapping.objects.update(dataset_version=newer)
    with pytest.raises(IncomparableError, match="Compare them on version 1"):
        compare_runs(runs, version=newer)
    for evaluation in Evaluation.objects.all():
        evaluation.pk, evaluation.dataset_version = None, newer
        evaluation.values = [[1 - one for one in column] for column in evaluation.values]
        evaluation.save()
    assert compare_runs(runs, version=newer).comparison == compare(1 - VALUES, seed=42)
    assert compare_runs(runs).comparison == compare(VALUES, seed=42)


def test_invalid_requests_raise_explanatory_errors(runs):
    with pytest.raises(ComparingError, match="takes 2 to 64 runs, not 1"):
        compare_runs(runs[:1])
    with pytest.raises(ComparingError, match="is not among the compared runs"):
        compare_runs(runs[:2], baseline=runs[2])
    with pytest.raises(ComparingError, match='no common measure "ERR@5"; choose one of nDCG@5'):
        compare_runs(runs, measure="ERR@5")


def test_measure_that_decreases_with_quality_has_no_best_run(runs):
    for evaluation in Evaluation.objects.all():
        evaluation.measures = [*evaluation.measures, "FirstRelevant@10"]
        evaluation.values = [*evaluation.values, [3.0] * 40]
        evaluation.save()
    with pytest.raises(ComparingError, match="FirstRelevant@10 falls as a run improves"):
        compare_runs(runs, measure="FirstRelevant@10")
    comparison = compare_runs(runs)
    assert "FirstRelevant@10" in {one.measure for one in summarise_measures(comparison)}
    assert "FirstRelevant@10" not in list_choices(comparison)["measures"]


def test_runs_without_a_common_primary_measure_are_described(db):
    mapping = make_queries(40)
    first = make_compared(mapping, VALUES[:1], name="first")
    second = make_compared(mapping, VALUES[1:2], name="second")
    evaluation = Evaluation.objects.get(run__benchmark=second)
    position = evaluation.measures.index("nDCG@10")
    del evaluation.measures[position], evaluation.values[position]
    evaluation.save()
    comparison = compare_runs([*first.runs.all(), *second.runs.all()], measure="P@5")
    assert not comparison.is_tested
    assert "nDCG@10" not in {one.measure for one in summarise_measures(comparison)}
    assert "nDCG@10" not in list_choices(comparison)["measures"]


def test_too_few_common_queries_are_no_comparison(db):
    values = VALUES[:2].copy()
    values[1, 1:] = np.nan
    runs = make_compared(make_queries(40), values).runs.all()
    with pytest.raises(
        ComparingError, match=r"Only 1 of 40 queries has a value in every compared run.*top 20 answered"
    ):
        compare_runs(runs)


def test_cached_comparison_is_not_reused_for_changed_values(runs):
    before = compare_runs(runs).comparison
    assert compare_runs(runs).comparison == before
    evaluation = Evaluation.objects.get(run=runs[0])
    evaluation.values[evaluation.measures.index("nDCG@10")] = [1.0] * 40
    evaluation.save()
    assert compare_runs(runs).verdict.winner == 0


def test_it_costs_the_same_queries_for_sixteen_runs(db):
    mapping = make_queries(40)
    costs = []
    for number in (2, 16):
        runs = list(make_compared(mapping, noisy([0.5] * number, 40), name=f"{number} runs").runs.all())
        costs.append(count_statements(lambda runs=runs: compare_runs(runs)))
    assert costs[0] == costs[1]
    assert costs[0] <= 10
