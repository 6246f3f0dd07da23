import math

import numpy as np
import pytest
from scipy import stats

from benchbench.ir.profiles import FLOWBABY_1_0, FLOWBABY_1_1, PLAIN, PROFILES, Mean, Profile, ProfileError
from benchbench.ir.slices import LabelShape, QueryFacts, cut_slices, find_reversals, find_weak_slices, label_shape


def facts(n, **supplied):
    """`n` queries; each of `given` has a value per query."""
    base = {"text": ["a word"] * n, "n_relevant": [1] * n} | supplied
    return [QueryFacts(**{name: values[i] for name, values in base.items()}) for i in range(n)]


def sizes(slices):
    return {one.name: one.n for one in slices}


class TestSlices:
    def test_query_counts_in_each_stated_slice_or_in_none(self):
        slices = cut_slices(facts(4, slices=[["new", "hard"], ["new"], [], ["hard"]]), minimum=2)
        assert sizes(slices) == {"slice: hard": 2, "slice: new": 2, "slice: (none)": 1}
        assert [one.is_small for one in slices] == [False, False, True]
        assert slices[0].members.tolist() == [True, False, False, True]

    def test_metadata_divides_only_where_queries_differ(self):
        slices = cut_slices(facts(3, category=["x", "y", ""], difficulty=["easy"] * 3, version=["3.11", "3.9", "3.9"]))
        categories = {"category: x": 1, "category: y": 1, "category: (none)": 1}
        assert sizes(slices) == {**categories, "version: 3.11": 1, "version: 3.9": 2}

    def test_the_numbers_of_relevant_documents_are_banded(self):
        bands = {f"relevant documents: {band}": n for band, n in (("0", 1), ("1", 2), ("2-4", 2), ("5+", 2))}
        assert sizes(cut_slices(facts(7, n_relevant=[0, 1, 2, 4, 5, 90, 1]))) == bands

    @pytest.mark.parametrize(
        ("lengths", "bands"),
        [
            ([1, 2, 3, 4, 5, 6, 10, 11, 12], {"1-3 words": 3, "4-6 words": 3, "10-12 words": 3}),
            ([1, 1, 1, 1, 1, 7], {"1 word": 5, "7 words": 1}),
            ([3, 3, 4, 4, 4, 4], {"3 words": 2, "4 words": 4}),
            ([5, 5], {}),
            ([], {}),
        ],
    )
    def test_query_lengths_are_thirds_and_equal_lengths_stay_together(self, lengths, bands):
        slices = cut_slices(facts(len(lengths), text=["word " * length for length in lengths]))
        assert sizes(slices) == {f"query length: {label}": n for label, n in bands.items()}


class TestWeakSlices:
    def test_only_large_slices_far_below_others_are_weak(self):
        rng = np.random.default_rng(0)
        category = ["weak"] * 30 + ["near"] * 30 + ["fine"] * 30 + ["tiny"] * 5
        values = rng.normal(0.6, 0.1, 95)
        values[:30] -= 0.2
        values[30:60] -= 0.01
        values[90:] -= 0.5
        (result,) = find_weak_slices(values, cut_slices(facts(95, category=category)))
        assert result.slice.name == "category: weak"
        assert result.mean == pytest.approx(values[:30].mean())
        assert result.other_mean == pytest.approx(values[30:].mean())
        assert result.p < 0.001

    def test_queries_without_a_value_do_not_count(self):
        values = np.array([0.0] * 10 + [1.0] * 10 + [math.nan] * 10)
        slices = cut_slices(facts(30, category=["a"] * 10 + ["b"] * 10 + ["c"] * 10))
        assert [hit.slice.label for hit in find_weak_slices(values, slices)] == ["a"]

    def test_by_chance_alone_slices_are_rarely_weak(self):
        slices = cut_slices(facts(100, category=[f"c{i % 5}" for i in range(100)]))
        values = np.random.default_rng(1).random((400, 100))
        assert np.mean([bool(find_weak_slices(one, slices)) for one in values]) < 0.08

    def test_slice_with_few_valued_queries_is_small(self):
        category = ["hard"] * 30 + ["easy"] * 30
        values = np.array([0.1, 0.2] * 15 + [0.8, 0.9] * 15)
        (result,) = find_weak_slices(values, cut_slices(facts(60, category=category)))
        assert result.slice.n == 30
        values[10:30] = math.nan
        (result,) = find_weak_slices(values, cut_slices(facts(60, category=category)))
        assert (result.slice.n, result.slice.is_small) == (10, False)
        values[9] = math.nan
        assert find_weak_slices(values, cut_slices(facts(60, category=category))) == []


class TestReversals:
    CATEGORIES = ["a"] * 30 + ["b"] * 10 + ["c"] * 10

    def test_the_leader_overall_may_be_behind_in_most_slices(self):
        first, second = np.array([0.9] * 30 + [0.4] * 20), np.array([0.5] * 30 + [0.5] * 20)
        slices = cut_slices(facts(50, category=self.CATEGORIES))
        (result,) = find_reversals(first, second, slices)
        assert (result.partition, result.leader, len(result.slices)) == ("category", 0, 3)
        assert [one.label for one in result.against] == ["b", "c"]
        (mirrored,) = find_reversals(second, first, slices)
        assert (mirrored.leader, mirrored.against) == (1, result.against)

    def test_reversal_is_complete_only_when_runs_answered_different_queries(self):
        first = np.array([0.9] * 18 + [math.nan] * 12 + [0.2] * 5 + [math.nan] * 15)
        second = np.array([math.nan] * 25 + [0.95] * 5 + [0.3] * 20)
        (result,) = find_reversals(first, second, cut_slices(facts(50, category=["a"] * 30 + ["b"] * 20)))
        assert result.leader == 0
        assert result.against == result.slices

    def test_small_slices_equal_means_and_consistent_leads_never_reverse(self):
        slices = cut_slices(facts(50, category=self.CATEGORIES), minimum=11)
        first, second = np.array([0.9] * 30 + [0.4] * 20), np.full(50, 0.5)
        assert find_reversals(first, second, slices) == []
        slices = cut_slices(facts(50, category=self.CATEGORIES))
        assert find_reversals(second, second, slices) == []
        assert find_reversals(second + 0.1, second, slices) == []
        assert find_reversals(np.full(50, math.nan), second, slices) == []


class TestLabelShape:
    def test_the_label_shape_of_five_topics(self):
        assert label_shape([0, 1, 1, 2, 4]) == LabelShape(0, 4, 1.6, 1.0, 2, 20.0, 40.0, 40.0, 5)

    def test_the_95th_percentile_is_one_of_the_numbers(self):
        assert label_shape(range(101)).p95 == 95
        assert label_shape([3]).p95 == 3
        assert label_shape([]).total_queries == 0


@pytest.mark.parametrize(("inside", "outside"), [(20, 30), (11, 400), (200, 12)])
def test_slice_is_compared_with_the_rest_by_welchs_test(inside, outside):
    draw = np.random.default_rng(inside)
    low, high = draw.random(inside) / 4, draw.random(outside)
    slices = cut_slices(facts(inside + outside, category=["x"] * inside + ["y"] * outside), minimum=2)
    weak = {one.slice.name: one.p for one in find_weak_slices(np.concatenate([low, high]), slices)}
    tested = sum(not one.is_small for one in slices)
    expected = stats.ttest_ind(low, high, equal_var=False, alternative="less").pvalue * tested
    assert weak["category: x"] == pytest.approx(expected, rel=1e-9)


VALUES = np.array([1.0, 0.5, 0.0])


def test_names_parse_back():
    assert [str(Profile.parse(name)) for name in PROFILES] == ["plain", "flowbaby-1.0", "flowbaby-1.1"]
    with pytest.raises(
        ProfileError, match=r"The aggregation profile 'fancy' does not exist; choose one of plain, flowbaby-1\.0"
    ):
        Profile.parse("fancy")


def test_queries_weigh_equally_or_by_judgments_with_minimum_one():
    judgments = [3, 0, 1]
    assert Mean.BENCHMARK.compute(VALUES, judgments) == Mean.MACRO.compute(VALUES, judgments) == 0.5
    assert Mean.WEIGHTED.compute(VALUES, judgments) == 3.5 / 5
    assert (PLAIN.mean, FLOWBABY_1_0.mean, FLOWBABY_1_1.mean) == (Mean.MACRO, Mean.MACRO, Mean.WEIGHTED)


def test_a_query_without_a_value_does_not_weigh():
    assert Mean.WEIGHTED.compute(np.array([1.0, np.nan, 0.0]), [1, 7, 3]) == 0.25
    assert math.isnan(Mean.MACRO.compute(np.array([np.nan]), [1]))
    assert math.isnan(Mean.MACRO.compute(np.array([]), []))


def test_query_counts_in_its_first_or_every_slice():
    assert FLOWBABY_1_0.find_slices(("a", "b")) == ("a",)
    assert FLOWBABY_1_1.find_slices(("a", "b")) == PLAIN.find_slices(("a", "b")) == ("a", "b")
