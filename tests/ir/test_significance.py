import itertools
import time
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.skew import foresee_detectable
from benchbench.ir.statistics.verdict import find_verdict
from tests.ir.simulated import RUNS, benchmark, true_mean

NAN = float("nan")


def mean(d, axis=-1):
    return d.mean(axis=axis)


def alone(values, pair, **options):
    [only] = compare(values[[pair.first, pair.second]], **options).pairs
    return only.p_adjusted


class TestAgainstScipy:
    def test_the_randomisation_and_the_t_test_of_a_pair(self):
        values = benchmark(np.random.default_rng(1), [0.4, 0, 0.1], 200)
        for pair in compare(values, seed=2).pairs:
            first, second = values[pair.first], values[pair.second]
            theirs = stats.permutation_test(
                (first - second,), mean, permutation_type="samples", n_resamples=10_000, vectorized=True, rng=3
            ).pvalue
            error = np.sqrt(theirs * (1 - theirs) / 10_000)
            assert alone(values, pair, seed=2) == pytest.approx(theirs, abs=6 * error + 1e-4)
            assert pair.p_t == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-9)

    @pytest.mark.parametrize("queries", [5, 9, 12])
    def test_few_queries_are_enumerated_and_equal_exactly(self, queries):
        values = np.round(benchmark(np.random.default_rng(queries), [0.9, 0, 0.2], queries), 1)
        comparison = compare(values, seed=0)
        assert comparison.exact
        for pair in comparison.pairs:
            d = values[pair.first] - values[pair.second]
            theirs = stats.permutation_test((d,), mean, permutation_type="samples", n_resamples=np.inf, vectorized=True)
            assert alone(values, pair, seed=0) == pytest.approx(theirs.pvalue, rel=1e-12)

    def test_the_bootstrap_interval_of_a_pair(self):
        values = benchmark(np.random.default_rng(1), [0.4, 0], 200)
        [pair] = compare(values, seed=2, resamples=20_000).pairs
        theirs = stats.bootstrap((values[0] - values[1],), np.mean, n_resamples=20_000, method="BCa", rng=3)
        ends = theirs.confidence_interval
        assert [pair.interval.low, pair.interval.high] == pytest.approx(list(ends), abs=0.2 * theirs.standard_error)


class TestByHand:
    def test_a_pair_of_six_queries(self):
        d = np.array([0.5, 0.25, 0.25, 0.5, 0.75, 0.0])
        comparison = compare(np.array([d, np.zeros(6)]), seed=0)
        [pair] = comparison.pairs
        # Only 4 of the 64 patterns have a sum as large: the sign of the query without a difference does not matter.
        assert pair.p_adjusted == 4 / 64
        assert not pair.significant
        assert (pair.wins, pair.ties, pair.losses) == (5, 1, 0)
        assert pair.difference == 0.375
        assert pair.standard_error == pytest.approx(d.std(ddof=1) / np.sqrt(6))
        assert pair.effect == pytest.approx(0.375 / d.std(ddof=1))
        assert comparison.means == (0.375, 0.0)
        assert (comparison.n, comparison.left_out, comparison.resamples) == (6, 0, 31)

    def test_adjusted_p_uses_the_greatest_t_of_the_family(self):
        values = benchmark(np.random.default_rng(8), [0, 0, 0.8, 1.2], 10)
        differences = np.array([values[a] - values[b] for a, b in itertools.combinations(range(4), 2)])
        signs = np.array(list(itertools.product((1, -1), repeat=10)))
        greatest = np.max([np.abs(stats.ttest_1samp(signs * d, 0, axis=1).statistic) for d in differences], axis=0)
        for pair, d in zip(compare(values, seed=0).pairs, differences, strict=True):
            assert pair.p_adjusted == np.mean(greatest >= abs(stats.ttest_1samp(d, 0).statistic) - 1e-9)

    def test_a_family_against_a_baseline_is_smaller_and_sharper(self):
        values = benchmark(np.random.default_rng(8), [0, 0.3, 0.4, 0.5])
        every, against = compare(values, seed=0), compare(values, seed=0, baseline=2)
        assert [(pair.first, pair.second) for pair in against.pairs] == [(0, 2), (1, 2), (3, 2)]
        assert against.critical < every.critical
        for pair in against.pairs:
            same = every.get_pair(pair.first, 2)
            assert pair.p_adjusted <= same.p_adjusted
            assert pair.p_t == pytest.approx(same.p_t)
            assert pair.interval.low == pytest.approx(same.interval.low)
        with pytest.raises(ComparisonError, match=r"Runs 0 and 1 are not a pair .* with run 2"):
            against.get_pair(0, 1)

    def test_the_detectable_difference_is_critical_plus_z_errors(self):
        comparison = compare(benchmark(np.random.default_rng(8), [0, 0.3, 0.4]), seed=0, power=0.9)
        for pair in comparison.pairs:
            assert pair.detectable >= (comparison.critical + stats.norm.ppf(0.9)) * pair.error - 1e-12
            assert pair.detectable == pytest.approx((comparison.critical + stats.norm.ppf(0.9)) * pair.error, rel=0.05)

    def test_the_foreseen_difference_bounds_the_detectable_one(self):
        values = benchmark(np.random.default_rng(8), [0, 0.3, 0.4], 200)
        for pair in compare(values, seed=0).pairs:
            deviation = np.std(values[pair.first] - values[pair.second], ddof=1)
            assert foresee_detectable(deviation, 200, 3) == pytest.approx(pair.detectable, rel=0.1)

    @pytest.mark.parametrize("baseline", [None, 0, 2, 4])
    def test_pair_lookup_finds_exactly_the_family_pairs(self, baseline):
        comparison = compare(benchmark(np.random.default_rng(3), [0] * 5, 30), seed=0, baseline=baseline)
        remote = {(pair.first, pair.second): pair for pair in comparison.pairs}
        for first in range(-1, 6):
            for second in range(-1, 6):
                if (first, second) in remote:
                    assert comparison.get_pair(first, second) is remote[first, second]
                elif (second, first) in remote:
                    assert comparison.get_pair(first, second) == remote[second, first].reversed
                else:
                    with pytest.raises(ComparisonError, match="are not a pair"):
                        comparison.get_pair(first, second)

    def test_a_reversed_pair_says_the_same(self):
        values = benchmark(np.random.default_rng(8), [0, 0.7])
        [forth], [back] = compare(values, seed=0).pairs, compare(values[::-1], seed=0).pairs
        for name, value in asdict(forth.reversed).items():
            if name not in ("first", "second"):
                assert asdict(back)[name] == pytest.approx(value, rel=1e-9)
        assert (forth.reversed.first, forth.reversed.second) == (1, 0)


class TestNoVariance:
    def test_equal_runs_have_p_1(self):
        comparison = compare(benchmark(np.random.default_rng(8), [0, 1.5])[[0, 0, 1]], seed=0)
        pair = comparison.get_pair(0, 1)
        assert (pair.p_t, pair.p_adjusted) == (1, 1)
        assert pair.simultaneous.low < pair.interval.low < 0 < pair.interval.high < pair.simultaneous.high
        assert (pair.effect, pair.detectable, pair.ties) == (None, None, 100)
        assert comparison.get_pair(0, 2).significant

    def test_a_run_better_alike_on_every_query_wins(self):
        comparison = compare(np.array([[0.3, 0.2, 0.7] * 10, [0.2, 0.1, 0.6] * 10]), seed=0)
        [pair] = comparison.pairs
        assert pair.difference == pytest.approx(0.1)
        assert (pair.p_t, pair.p_adjusted, pair.wins, pair.effect) == (0, 1 / 10_001, 30, None)
        assert pair.significant
        assert 0 < pair.simultaneous.low <= pair.interval.low < 0.1 < pair.interval.high <= pair.simultaneous.high
        assert comparison.critical is not None
        assert find_verdict(comparison).winner == 0

    @pytest.mark.parametrize("queries", [6, 10, 20, 100])
    def test_success_on_all_queries_beats_none(self, queries):
        [pair] = compare(np.array([[1.0] * queries, [0.0] * queries]), seed=0).pairs
        assert pair.p_adjusted == (2 / 2**queries if queries < 14 else 1 / 10_001)
        assert pair.significant
        if queries >= 20:
            assert 0.8 < pair.simultaneous.low < pair.simultaneous.high == 1

    def test_such_a_pair_does_not_change_the_others(self):
        values = benchmark(np.random.default_rng(8), [0, 0.4])
        [pair] = compare(values, seed=0).pairs
        assert compare(values[[0, 0, 1]], seed=0).get_pair(0, 2).p_adjusted == pair.p_adjusted


class TestInput:
    def test_only_queries_that_every_run_answered_are_compared(self):
        values = benchmark(np.random.default_rng(8), [0, 0.4, 0.2], 60)
        holes = values.copy()
        holes[0, 3] = holes[2, 40:50] = NAN
        comparison = compare(holes, seed=0)
        assert (comparison.n, comparison.left_out) == (49, 11)
        stored = ~np.isnan(holes).any(axis=0)
        assert comparison.pairs == compare(values[:, stored], seed=0).pairs
        assert comparison.means == pytest.approx(values[:, stored].mean(axis=1))

    @pytest.mark.parametrize(
        ("values", "options", "message"),
        [
            ([[1, NAN, 0], [0, 1, NAN]], {}, "Only 1 of 3 queries has a value in every compared run"),
            ([[1, 0, 1]], {}, "needs at least 2 runs, not 1"),
            ([[1, 0], [0, 1]], {"baseline": 2}, "The baseline must be a run from 0 to 1, not 2"),
            ([[1, 0], [0, 1]], {"alpha": 0}, "alpha must be above 0 and below 1, not 0"),
            ([[1, 0], [0, 1]], {"power": 1.0}, "power must be above 0 and below 1, not 1.0"),
            ([[1, 0], [0, 1]], {"resamples": 10}, "With 10 resamples no p-value can be as small as alpha = 0.05"),
        ],
    )
    def test_it_refuses_with_a_sentence(self, values, options, message):
        with pytest.raises(ComparisonError, match=message):
            compare(np.array(values, float), seed=0, **options)

    def test_so_few_queries_that_nothing_can_be_shown(self):
        comparison = compare(np.array([[1, 0.9, 1, 0.8], [0.0, 0, 0, 0]]), seed=0)
        [pair] = comparison.pairs
        assert pair.p_adjusted == 2 / 16
        assert (comparison.critical, pair.simultaneous, pair.detectable) == (None, None, None)


class TestEqualRuns:
    @pytest.mark.parametrize("baseline", [None, 0, 4])
    def test_duplicate_runs_have_the_pairs_of_one_run(self, baseline):
        distinct = benchmark(np.random.default_rng(8), [0, 0.1, 0.4, 0.5])
        rows = [2, 0, 2, 3, 1, 0, 2]
        # Among noise of their own bits the same runs are not known as equal: rounding apart, the answer is the same.
        apart = distinct[rows] + np.arange(len(rows))[:, None] * 1e-14
        comparison, another = (compare(values, seed=4, baseline=baseline) for values in (distinct[rows], apart))
        assert comparison.critical == pytest.approx(another.critical, rel=1e-9)
        assert len(comparison.pairs) == len(another.pairs)
        for pair, theirs in zip(comparison.pairs, another.pairs, strict=True):
            ours, expected = asdict(pair), asdict(theirs)
            if rows[pair.first] == rows[pair.second]:
                assert (pair.difference, pair.p_adjusted, pair.ties, pair.effect) == (0, 1, comparison.n, None)
                assert pair.interval.low < 0 < pair.interval.high
            for name, figure in expected.items():
                # Resamples are computed in single precision.
                close = {"rel": 1e-9, "abs": 1e-6 if name in ("interval", "simultaneous", "detectable") else 1e-11}
                assert ours[name] == (figure if figure is None else pytest.approx(figure, **close)), name

    def test_equal_runs_have_no_critical_value(self):
        comparison = compare(np.tile([0.2, 0.4, 0.1], (3, 1)), seed=4)
        assert comparison.critical is None
        assert [(p.first, p.second, p.p_adjusted) for p in comparison.pairs] == [(0, 1, 1), (0, 2, 1), (1, 2, 1)]


class TestDraws:
    def test_results_depend_on_the_seed_alone(self):
        values = benchmark(np.random.default_rng(8), [0, 0.1, 0.2])
        assert compare(values, seed=4) == compare(values, seed=4)
        assert compare(values, seed=4) != compare(values, seed=5)

    def test_p_values_do_not_depend_on_run_order(self):
        values = benchmark(np.random.default_rng(8), [0, 0.1, 0.2, 0.5, 0.6])
        order = [3, 0, 4, 2, 1]
        one, another = compare(values, seed=4), compare(values[order], seed=4)
        assert another.critical == pytest.approx(one.critical, rel=1e-12)
        for pair in another.pairs:
            same = one.get_pair(order[pair.first], order[pair.second])
            assert pair.p_adjusted == same.p_adjusted
            assert pair.interval.low == pytest.approx(same.interval.low, abs=1e-12)

    @settings(max_examples=60)
    @given(
        arrays.arrays(float, st.tuples(st.integers(2, 4), st.integers(2, 30)), elements=st.sampled_from([0, 0.5, 1])),
        st.integers(0, 9),
    )
    def test_the_simultaneous_interval_and_the_test_agree(self, values, seed):
        for pair in compare(values, seed=seed, resamples=199).pairs:
            assert 0 < alone(values, pair, seed=seed, resamples=199) <= pair.p_adjusted <= 1
            assert pair.wins + pair.ties + pair.losses == values.shape[1]
            assert pair.interval.low < pair.interval.high
            assert pair.significant == (pair.p_adjusted <= 0.05 and not pair.held_back)
            if pair.simultaneous is not None:
                outside = pair.simultaneous.low > 0 or pair.simultaneous.high < 0
                assert outside == pair.significant
                assert pair.simultaneous.low <= pair.difference <= pair.simultaneous.high

    def test_120_pairs_take_under_five_scipy_tests(self):
        values = benchmark(np.random.default_rng(8), [0] * RUNS, 500)
        options = {"permutation_type": "samples", "n_resamples": 5_000, "vectorized": True, "batch": 1_000}

        def seconds(act):
            started = time.process_time()  # which other work on the machine does not move
            act()
            return time.process_time() - started

        ours = min(seconds(lambda: compare(values, seed=0, resamples=5_000)) for _ in range(3))
        theirs = min(
            seconds(lambda: stats.permutation_test((values[0] - values[1],), mean, **options)) for _ in range(2)
        )
        assert ours < 5 * theirs


class TestSimulation:
    """Benchmarks of 16 runs × 100 queries, the first of those of perf/significance.py, which has 2,000."""

    def comparisons(self, abilities, benchmarks):
        return [
            compare(benchmark(np.random.default_rng((7, seed)), abilities), seed=seed, resamples=1_000)
            for seed in range(benchmarks)
        ]

    @pytest.mark.thorough
    def test_false_positive_rate_is_at_most_5_percent(self):
        result = self.comparisons([0] * RUNS, 200)
        wrong = np.mean([any(pair.significant for pair in one.pairs) for one in result])
        assert wrong <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
        assert np.mean([find_verdict(one).winner is not None for one in result]) <= wrong
        # Each pair by itself would be wrong somewhere in nearly every benchmark.
        assert np.mean([any(pair.p_t <= 0.05 for pair in one.pairs) for one in result]) > 0.8

    @pytest.mark.thorough
    def test_the_detectable_difference_is_right_within_20_percent(self):
        hits = {}
        declared = []
        for ability in (0.55, 0.7, 0.85):
            comparisons = self.comparisons([ability] + [0] * (RUNS - 1), 100)
            pairs = [pair for one in comparisons for pair in one.pairs if pair.first == 0]
            hits[true_mean(ability) - true_mean(0)] = np.mean([pair.significant for pair in pairs])
            declared.append(np.mean([pair.detectable for pair in pairs]))
        powers, claimed = list(hits.values()), np.mean(declared)
        assert powers[0] < 0.8 < powers[-1]
        assert 0.8 < claimed / np.interp(0.8, powers, list(hits)) < 1.2
