"""What judging the unjudged documents could make of a value: every outcome is tried."""

import itertools
import random

import numpy as np
import pytest

from benchbench.ir.bounds import BOUNDS
from benchbench.ir.coverage import condense, cover, is_uneven
from benchbench.ir.measures import DEFINITIONS, GradedRankings, Measure, evaluate

MEASURES = [Measure(name, k) for name in DEFINITIONS for k in (0, 1, 3, 5)]
MEASURES += [Measure(name) for name in ("nDCG", "AP", "RR", "Hits")]


def graded(ranking, truth):
    return GradedRankings.from_rankings([list(ranking)], [truth])


def outcomes(measure, ranking, truth, top_grade):
    """The value of the measure for every way to grade the unjudged documents of its first k places."""
    unjudged = [document for document in ranking[: measure.cutoff] if document not in truth]
    return [
        evaluate([measure], graded(ranking, truth | dict(zip(unjudged, grades, strict=True)))).item()
        for grades in itertools.product(range(top_grade + 1), repeat=len(unjudged))
    ]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.thorough
def test_bounds_match_brute_force_over_all_outcomes(seed):
    pick = random.Random(seed)
    top_grade = pick.choice([1, 2, 3])
    ranking = "".join(pick.sample("abcdefgh", pick.choice([0, 1, 4, 6])))
    truth = {document: pick.randint(-1, top_grade) for document in pick.sample("abcdefghxyz", pick.choice([2, 5, 7]))}
    coverage = cover(MEASURES, graded(ranking, truth), top_grade=top_grade)
    for row, measure in enumerate(MEASURES):
        if measure.name in ("Judged", "FirstRelevant"):
            continue
        values = outcomes(measure, ranking, truth, top_grade)
        assert coverage.lower_bound[row, 0] == pytest.approx(min(values), abs=1e-9), measure
        assert coverage.upper_bound[row, 0] == pytest.approx(max(values), abs=1e-9), measure


def test_only_builtin_measures_have_bounds():
    assert list(BOUNDS) == list(DEFINITIONS)
    coverage = cover([Measure("infAP")], graded("xa", {"a": 1}))
    assert np.isnan([coverage.lower_bound, coverage.upper_bound]).all()
    assert coverage.condensed.item() == pytest.approx(1)


def test_first_relevant_bounds_allow_a_lower_rank():
    coverage = cover([Measure("FirstRelevant"), Measure("FirstRelevant", 2)], graded("nxa", {"n": 0, "a": 1}))
    assert coverage.lower_bound[:, 0].tolist() == [2, 2]
    assert coverage.upper_bound[0, 0] == 3
    assert np.isnan(coverage.upper_bound[1, 0])


def test_deep_relevant_document_may_lower_the_value():
    coverage = cover([Measure("AP"), Measure("nDCG")], graded("anx", {"a": 1, "n": 0}))
    assert coverage.lower_bound[:, 0] == pytest.approx([(1 + 2 / 3) / 2, (1 + 1 / 2) / (1 + 1 / np.log2(3))])
    assert coverage.upper_bound[:, 0].tolist() == [1, 1]


def test_condensed_value_ignores_unjudged_documents():
    rankings, truths = [list("xayb"), list("xy"), []], [{"a": 2, "b": 0}, {"a": 1}, {"a": 1}]
    with_unjudged = GradedRankings.from_rankings(rankings, truths)
    without = GradedRankings.from_rankings([list("ab"), [], []], truths)
    measures = [measure for measure in MEASURES if measure.name != "FirstRelevant"]
    np.testing.assert_array_equal(condense(with_unjudged).lengths, [2, 0, 0])
    np.testing.assert_array_equal(cover(measures, with_unjudged).condensed, evaluate(measures, without))


def test_each_value_has_its_judged_share():
    coverage = cover([Measure("nDCG", 2), Measure("P", 4), Measure("RR")], graded("axby", {"a": 1, "b": -1}))
    assert coverage.judged[:, 0].tolist() == [0.5, 0.5, 0.5]
    assert cover([Measure("P", 1)], graded("axby", {"a": 1})).judged.item() == 1


def test_no_measures_and_no_queries_are_no_error():
    assert cover([], graded("a", {})).lower_bound.shape == (0, 1)
    assert cover([Measure("nDCG", 5), Measure("AP")], GradedRankings.from_rankings([], [])).upper_bound.shape == (2, 0)


def test_unevenly_judged_runs_are_detected():
    assert is_uneven([0.9, 0.8])
    assert not is_uneven([0.9, 0.87])
    assert not is_uneven([])
