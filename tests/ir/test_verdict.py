from dataclasses import replace

import numpy as np
import pytest

from benchbench.ir.statistics.effects import compute_contrasts, contrast_intervals
from benchbench.ir.statistics.frontier import Choice, Point, find_cheapest, find_frontier
from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import compute_rank_ranges, estimate_queries, find_verdict
from tests.ir.simulated import benchmark


def values(abilities, queries=100):
    return benchmark(np.random.default_rng(3), abilities, queries)


class TestWinner:
    def test_it_beats_every_other_run(self):
        verdict = find_verdict(compare(values([0, 2.5, 0.1, 0.2]), seed=0))
        assert (verdict.reference, verdict.winner, verdict.group) == (1, 1, (1,))
        assert set(verdict.worse) == {0, 2, 3}
        assert verdict.settled_by == 0

    def test_equal_best_runs_have_no_winner(self):
        verdict = find_verdict(compare(values([0, 2.5, 0.1])[[0, 1, 1, 2]], seed=0))
        assert verdict.winner is None
        assert verdict.group == (1, 2)
        assert verdict.more_queries == (None,)
        assert verdict.settled_by is None

    def test_group_holds_runs_indistinguishable_from_the_best(self):
        comparison = compare(values([0, 2.5, 2.4, 2.2, -1]), seed=0)
        verdict = find_verdict(comparison)
        assert verdict.winner is None
        assert set(verdict.group) == {1, 2, 3}
        means = [comparison.means[run] for run in verdict.group]
        assert means == sorted(means, reverse=True)
        assert verdict.worse == (0, 4)

    def test_runs_are_named_alike_in_any_order(self):
        order = [3, 1, 4, 0, 2]
        result = values([0, 2.5, 2.4, 2.2, -1])
        one, second = (find_verdict(compare(rows, seed=0)) for rows in (result, result[order]))
        assert [order[run] for run in second.group] == list(one.group)
        assert second.more_queries == one.more_queries


class TestBaseline:
    def test_runs_are_sorted_by_comparison_with_the_baseline(self):
        verdict = find_verdict(compare(values([1, 1.05, 3, -1.5, 3.2]), seed=0, baseline=0))
        assert (verdict.reference, verdict.winner) == (0, None)
        assert set(verdict.better) == {2, 4}
        assert verdict.worse == (3,)
        assert verdict.undecided == (1,)
        assert len(verdict.more_queries) == 1


class TestRankRanges:
    def test_indistinguishable_runs_share_a_range_between_others(self):
        comparison = compare(values([0, 2.5, 2.4, -3]), seed=0)
        assert compute_rank_ranges(comparison) == ((3, 3), (1, 2), (1, 2), (4, 4))

    def test_ranges_overlap_where_significance_is_not_transitive(self):
        comparison = compare(values([3, 1.5, 0]), seed=0)
        best, middle, worst = range(3)
        only = [replace(pair, significant=(pair.first, pair.second) == (best, worst)) for pair in comparison.pairs]
        ranges = compute_rank_ranges(replace(comparison, pairs=tuple(only)))
        assert (ranges[best], ranges[middle], ranges[worst]) == ((1, 2), (1, 3), (2, 3))

    def test_without_significant_differences_every_rank_is_open(self):
        assert compute_rank_ranges(compare(values([0, 1, 2], queries=4), seed=0)) == ((1, 3),) * 3
        assert compute_rank_ranges(compare(np.ones((3, 50)), seed=0)) == ((1, 3),) * 3

    def test_ranges_shrink_to_the_ranks_by_mean(self):
        comparison = compare(values([0, 4, 2, -2], queries=400), seed=0)
        order = sorted(range(4), key=lambda run: -comparison.means[run])
        assert compute_rank_ranges(comparison) == tuple((order.index(run) + 1,) * 2 for run in range(4))

    def test_a_baseline_leaves_ranks_unknown(self):
        with pytest.raises(ComparisonError, match="without a baseline"):
            compute_rank_ranges(compare(values([0, 1, 2]), seed=0, baseline=0))


class TestMoreQueries:
    def test_more_queries_make_the_observed_difference_detectable(self):
        comparison = compare(values([0, 0.3]), seed=0)
        [pair] = comparison.pairs
        more = estimate_queries(pair, comparison)
        exact = 100 * (pair.detectable / pair.difference) ** 2 - 100
        assert exact <= more <= exact * 1.1
        assert more == float(f"{more:.1e}")

    def test_suggested_queries_reach_the_intended_power(self):
        comparison = compare(np.tile([[0.4, 0.5, 0.6, 0.9], [0.2, 0.6, 0.7, 0.7]], 10), seed=0)
        [pair] = comparison.pairs
        assert not pair.significant
        more = estimate_queries(pair, comparison)
        larger = compare(np.tile([[0.4, 0.5, 0.6, 0.9], [0.2, 0.6, 0.7, 0.7]], 10 + more // 4), seed=0)
        assert larger.pairs[0].detectable == pytest.approx(pair.difference, rel=0.1)

    def test_no_realistic_number_is_none(self):
        d = np.array([1.0, -1.0] * 50)
        for difference in (d, d + 1e-3):
            comparison = compare(np.array([difference, np.zeros(100)]), seed=0)
            assert estimate_queries(comparison.pairs[0], comparison) is None

    def test_more_queries_is_known_even_for_tiny_samples(self):
        comparison = compare(np.array([[1, 0.9, 0.3, 0.8], [0.0, 0, 0, 0]]), seed=0)
        assert comparison.critical is None
        assert 1 <= estimate_queries(comparison.pairs[0], comparison) < 20


NAN = float("nan")
MODES = ("dense", "hybrid")


def effects(values, configurations):
    axes = dict.fromkeys(axis for configuration in configurations for axis in configuration)
    requests = [one for axis in axes for one in compute_contrasts(np.array(values, float), configurations, axis)]
    return {(effect.axis, effect.value): effect for effect in requests}


class TestContrasts:
    def test_contrast_averages_runs_differing_only_in_the_axis(self):
        configurations = [{"mode": mode, "rerank": rerank} for mode in MODES for rerank in (False, True)]
        effect_rows = effects([[0.1, 0.3], [0.4, 0.6], [0.2, 0.2], [0.9, 0.5]], configurations)
        assert set(effect_rows) == {("mode", "hybrid"), ("rerank", True)}
        assert effect_rows["rerank", True].differences.mean() == pytest.approx((0.3 + 0.5) / 2)
        assert effect_rows["mode", "hybrid"].differences.mean() == pytest.approx((0.0 + 0.2) / 2)
        assert effect_rows["mode", "hybrid"].reference == "dense"
        assert effect_rows["mode", "hybrid"].contexts == 2
        assert len(effect_rows["mode", "hybrid"].differences) == 2

    def test_runs_without_a_counterpart_do_not_count(self):
        pairs = (("dense", 10), ("dense", 50), ("hybrid", 50), ("hybrid", 90))
        configurations = [{"mode": mode, "top": top} for mode, top in pairs]
        effect_rows = effects([[0, 0], [0.1, 0.1], [0.4, 0.4], [1, 1]], configurations)
        assert effect_rows["mode", "hybrid"].contexts == 1
        assert effect_rows["mode", "hybrid"].differences.mean() == pytest.approx(0.3)
        assert effect_rows["top", 50].differences.mean() == pytest.approx(0.1)
        assert ("top", 90) not in effect_rows

    def test_absent_axis_is_none_and_repeated_runs_count_once(self):
        configurations = [{"mode": "dense"}, {"mode": "dense", "threshold": 0.5}, {"mode": "dense", "threshold": None}]
        effect_rows = effects([[0, 0.2], [0.5, 0.5], [0.4, 0.2]], configurations)
        assert effect_rows.keys() == {("threshold", 0.5)}
        assert effect_rows["threshold", 0.5].reference is None
        assert effect_rows["threshold", 0.5].differences.mean() == pytest.approx(0.5 - 0.2)

    def test_contrast_interval_of_two_runs_matches_their_comparison(self):
        values = benchmark(np.random.default_rng(1), [0, 0.4])
        values[1, 7] = NAN
        [effect] = compute_contrasts(values, [{"mode": mode} for mode in MODES], "mode")
        [interval] = contrast_intervals([effect], seed=6)
        pair = compare(values, seed=6).get_pair(1, 0)
        assert effect.differences.mean() == pytest.approx(pair.difference)
        assert len(effect.differences) == 99
        assert interval.low == pytest.approx(pair.interval.low)
        assert interval.high == pytest.approx(pair.interval.high)

    def test_runs_that_differ_in_nothing_have_no_effects(self):
        assert effects([[0, 1], [1, 1]], [{"mode": "dense"}] * 2) == {}

    def test_it_refuses_another_number_of_configurations(self):
        with pytest.raises(ComparisonError, match="2 runs need as many configurations, not 1"):
            compute_contrasts(np.array([[0, 1], [1, 1]]), [{}], "mode")


def points(*figures):
    return [Point(quality=quality, latency_ms=ms, index_bytes=size) for quality, ms, size in figures]


class TestFrontier:
    def test_frontier_keeps_points_no_other_dominates(self):
        result = points((0.5, 10, 100), (0.6, 20, 100), (0.55, 20, 100), (0.4, 10, 50), (0.5, 11, 100), (0.6, 30, 90))
        assert find_frontier(result) == (0, 1, 3, 5)

    def test_equal_points_stay_together(self):
        assert find_frontier(points((0.5, 10, 100), (0.5, 10, 100), (0.5, 10, 101))) == (0, 1)

    def test_calls_of_a_model_are_a_cost(self):
        free, paid = points((0.5, 20, 100), (0.5, 10, 100))
        assert find_frontier([free, replace(paid, llm_calls=1)]) == (0, 1)
        assert find_frontier([free, paid]) == (1,)

    def test_incomplete_points_are_excluded_from_the_frontier(self):
        assert find_frontier(points((0.5, 10, 100), (0.9, None, 1), (0.9, 1, None))) == (0,)
        assert find_frontier([]) == ()


class TestCheapestNotWorse:
    VALUES = benchmark(np.random.default_rng(3), [0, 2.5, 2.4, 2.2])
    COMPARISON = compare(VALUES, seed=0)  # runs 1, 2 and 3 cannot be distinguished, run 0 is worse
    POINTS = points((0, 1, 1), (0, 90, 10), (0, 40, 30), (0, 40, 20))

    def test_it_takes_the_quickest_then_the_smallest(self):
        chosen = find_cheapest(self.COMPARISON, self.POINTS)
        best = int(np.argmax(self.COMPARISON.means))
        assert isinstance(chosen, Choice)
        assert (chosen.run, chosen.best, chosen.within) == (3, best, (0, 1, 2, 3))
        assert chosen.most_lost == self.COMPARISON.get_pair(best, 3).simultaneous.high

    @pytest.mark.parametrize("queries", [12, 24, 240])
    def test_most_lost_reaches_as_far_as_any_interval(self, queries):
        """One query in twelve differs much."""
        skewed = np.array([([1.0] + [0.5] * 11) * (queries // 12), ([0.0] + [0.52] * 11) * (queries // 12)])
        pair = compare(skewed, seed=0).get_pair(0, 1)
        chosen = find_cheapest(compare(skewed, seed=0), points((0, 2, 1), (0, 1, 1)))
        assert (pair.simultaneous is None) == (queries < 20)
        assert chosen.run == (0 if pair.significant else 1)
        assert pair.significant or chosen.most_lost == (pair.simultaneous and pair.simultaneous.high)
        assert pair.simultaneous is None or pair.interval.high <= pair.simultaneous.high

    def test_the_best_is_the_best_within_the_bounds(self):
        chosen = find_cheapest(self.COMPARISON, self.POINTS, max_latency_ms=50, max_index_bytes=10)
        assert chosen == Choice(run=0, best=0, within=(0,), most_lost=0.0)
        assert find_cheapest(self.COMPARISON, self.POINTS, max_latency_ms=0.5) is None

    def test_unknown_costs_rank_last_and_exceed_every_bound(self):
        unknown = points((0, 1, 1), (0, 90, 10), (0, None, 30), (0, 50, None))
        assert find_cheapest(self.COMPARISON, unknown).run == 3
        assert find_cheapest(self.COMPARISON, unknown, max_latency_ms=100).within == (0, 1, 3)
        assert find_cheapest(self.COMPARISON, unknown, max_index_bytes=100).within == (0, 1, 2)

    def test_cheapest_needs_all_pairs_and_one_point_per_run(self):
        with pytest.raises(ComparisonError, match="needs a comparison of all pairs"):
            find_cheapest(compare(self.VALUES, seed=0, baseline=1), self.POINTS)
        with pytest.raises(ComparisonError, match="4 runs need as many points, not 3"):
            find_cheapest(self.COMPARISON, self.POINTS[:3])
