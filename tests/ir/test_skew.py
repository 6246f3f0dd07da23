"""Allowance for skew: known answers, properties, and what it promises where few differences are large."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from benchbench.ir.statistics.max_t import Family
from benchbench.ir.statistics.resampling import draw_counts
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.skew import FEWEST, bound_by_score, bound_t, find_bars, find_intervals
from benchbench.ir.statistics.verdict import check_non_inferiority
from tests.ir.simulated import benchmark


def one_pair(d, **options):
    [pair] = compare(np.array([d, np.zeros(len(d))]), seed=1, **options).pairs
    return pair


class TestKnownAnswers:
    @pytest.mark.parametrize(
        ("wins", "losses", "n", "low", "high"),
        [(1, 7, 21, -0.517, -0.026), (6, 16, 161, -0.124, -0.0054)],
    )
    def test_tango_intervals_published_by_fagerland_and_others(self, wins, losses, n, low, high):
        """Recommended tests and confidence intervals for paired binomial proportions (Statistics in Medicine 2014)."""
        z = stats.norm.ppf(0.975)
        assert bound_by_score(wins, losses, n, z) == pytest.approx(low, abs=6e-4)
        assert -bound_by_score(losses, wins, n, z) == pytest.approx(high, abs=6e-4)

    def test_without_discordant_queries_the_score_bound_is_known(self):
        z = stats.norm.ppf(0.95)
        assert bound_by_score(0, 0, 50, z) == pytest.approx(-(z**2) / (50 + z**2), abs=1e-9)
        assert bound_by_score(0, 50, 50, z) == -1

    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_bootstrap_t_agrees_with_plain_numpy(self, weighted):
        rng = np.random.default_rng(4)
        values = benchmark(rng, [0, 0.1, 0.4], 30)
        weights = rng.lognormal(0, 1, 30) if weighted else None
        weights = None if weights is None else weights / weights.mean()
        family = Family.from_values(values, None, weights)
        bounds = bound_t(values, family, (0.05, 0.01), resamples=500, seed=3, weights=weights)
        counts = np.concatenate(list(draw_counts(30, 500, 3))).astype(int)
        u = np.ones(30) if weights is None else weights
        for index, (first, second) in enumerate(zip(family.first, family.second, strict=True)):
            e = (values[first] - values[second] - family.difference[index]) * u
            resampled = np.stack([np.repeat(e, times) for times in counts])
            t = np.sort(np.abs(resampled.mean(axis=1)) / (resampled.std(axis=1, ddof=1) / math.sqrt(30)))
            assert bounds[:, index] == pytest.approx([t[-25], t[-5]], rel=1e-3)

    def test_the_bootstrap_t_of_many_normal_differences_is_students(self):
        d = np.random.default_rng(1).normal(0.1, 1, 400)
        values = np.array([d, np.zeros(400)])
        [[bound], _] = bound_t(values, Family.from_values(values, None), (0.05, 0.05), resamples=4_000, seed=3)
        assert bound == pytest.approx(stats.t.ppf(0.975, 399), rel=0.06)

    @pytest.mark.parametrize("n", [8, 30, 200])
    def test_bars_are_where_unseen_queries_reach_the_critical_value(self, n):
        d = np.random.default_rng(n).normal(0.1, 0.3, n)
        se = d.std(ddof=1) / math.sqrt(n)
        critical = max(2.5, stats.t.ppf(0.975, n - 1))
        bar = find_bars(np.array([se]), n, 2.5)[0]
        moved = np.append(d - d.mean() + bar, [0.1, -0.1])
        assert moved.mean() / (moved.std(ddof=1) / math.sqrt(n + 2)) == pytest.approx(critical)
        assert find_bars(np.array([se]), n, math.inf) == math.inf


class TestProperties:
    VALUES = arrays.arrays(
        float, st.tuples(st.integers(2, 4), st.integers(20, 40)), elements=st.sampled_from([0, 0.4, 1])
    )

    @settings(max_examples=60)
    @given(VALUES, st.booleans(), st.integers(0, 9))
    def test_intervals_have_a_width_and_nest(self, values, weighted, seed):
        weights = np.random.default_rng(seed).lognormal(0, 0.5, values.shape[1]) if weighted else None
        for pair in compare(values, seed=seed, resamples=199, weights=weights).pairs:
            assert pair.interval.low < pair.interval.high
            assert -1 <= pair.interval.low <= pair.interval.high <= 1
            if pair.simultaneous is not None:
                low, high = pair.simultaneous.low, pair.simultaneous.high
                assert low < high
                assert (low > 0 or high < 0) == pair.significant
                if not pair.significant:
                    assert low <= pair.interval.low
                    assert high >= pair.interval.high
            back = pair.reversed
            assert (back.interval.low, back.error, back.held_back) == (-pair.interval.high, pair.error, pair.held_back)

    def test_the_unit_of_a_measure_does_not_matter(self):
        values = benchmark(np.random.default_rng(8), [0, 0.3, 0.6], 60)
        values[0, 0] = 1
        for one, ten in zip(compare(values, seed=1).pairs, compare(10 * values, seed=1).pairs, strict=True):
            assert (one.p_adjusted, one.significant) == (ten.p_adjusted, ten.significant)
            assert ten.error == pytest.approx(10 * one.error)
            assert ten.simultaneous.high == pytest.approx(10 * one.simultaneous.high, rel=1e-5)

    @pytest.mark.parametrize("queries", [FEWEST - 1, FEWEST])
    def test_no_simultaneous_interval_below_twenty_queries(self, queries):
        pair = one_pair(np.random.default_rng(1).normal(0.5, 0.2, queries))
        assert pair.significant
        assert (pair.simultaneous is None) == (queries < FEWEST)

    def test_intervals_of_means_are_those_of_pairs(self):
        values = benchmark(np.random.default_rng(8), [0, 0.3], 60)
        pair = compare(values, seed=1).pairs[0]
        [ends] = find_intervals((values[0] - values[1])[None], alpha=0.05, resamples=10_000, seed=1)
        assert (ends.low, ends.high) == pytest.approx((pair.interval.low, pair.interval.high))


class TestSkew:
    def test_a_few_small_wins_alone_are_held_back(self):
        """Eight wins of .01 among 60 queries have a small p, but one large loss that was not drawn would turn them."""
        d = np.zeros(60)
        d[:8] = np.linspace(0.01, 0.011, 8)
        pair = one_pair(d)
        assert pair.p_adjusted < 0.01
        assert (pair.significant, pair.held_back) == (False, True)
        assert pair.simultaneous.low <= 0

    def test_yes_or_no_is_judged_by_flips_alone(self):
        d = np.zeros(60)
        d[:6] = 1
        pair = one_pair(d)
        assert pair.p_adjusted == pytest.approx(2 / 64, abs=0.01)
        assert (pair.significant, pair.held_back, pair.step) == (True, False, 1)
        assert pair.simultaneous.low > 0

    def test_skewed_runs_without_a_difference_are_rarely_told_apart(self):
        """A run is better on 12 % of the queries and much worse on 3 %: without any of these it looks better."""
        wrong = {"flips": 0, "now": 0}
        for seed in range(300):
            rng = np.random.default_rng((6, seed))
            kind = rng.random(50)
            gain = 0.3 * rng.random(50)
            pair = one_pair(np.where(kind < 0.03, -0.6, np.where(kind < 0.15, gain, 0)), resamples=999)
            wrong["flips"] += pair.p_adjusted <= 0.05
            wrong["now"] += pair.significant
        assert wrong["flips"] > 24
        assert wrong["now"] <= 20

    def test_intervals_of_success_hold_together(self):
        """Five runs that succeed on nine of ten queries and rarely differ, 20 queries: all ten intervals hold."""
        claimed = 0
        for seed in range(300):
            rng = np.random.default_rng((7, seed))
            values = np.where(rng.random((5, 20)) < 0.04, rng.random((5, 20)) < 0.5, rng.random(20) < 0.9).astype(float)
            pairs = compare(values, seed=seed, resamples=499).pairs
            claimed += all(pair.simultaneous.low <= 0 <= pair.simultaneous.high for pair in pairs)
        assert claimed >= 276


class TestNotInferior:
    @pytest.mark.parametrize(("margin", "discordant"), [(0.02, 0.1), (0.05, 0.1), (0.05, 0.2), (0.1, 0.3)])
    @pytest.mark.parametrize("n", [50, 200])
    def test_a_loss_of_the_margin_passes_in_five_percent(self, n, margin, discordant):
        """Counted over all wins and losses of a yes-or-no measure, each with its probability."""
        win, lose = (discordant - margin) / 2, (discordant + margin) / 2
        z, passed = stats.norm.ppf(0.95), 0.0
        for changed in range(n + 1):
            weight = stats.binom.pmf(changed, n, discordant)
            if weight < 1e-7:
                continue
            wins = np.arange(changed + 1)
            low = np.array([bound_by_score(int(won), changed - int(won), n, z) for won in wins])
            passed += weight * stats.binom.pmf(wins, changed, win / (win + lose))[low >= -margin].sum()
        assert passed <= 0.06

    def test_a_constant_loss_is_within_the_margin_or_not(self):
        pair = one_pair(np.full(60, -0.05))
        within, beyond = (check_non_inferiority(pair, 60, margin) for margin in (0.1, 0.02))
        assert (within.is_excluded, within.is_shown) == (True, False)
        assert (beyond.is_excluded, beyond.is_shown) == (False, True)

    def test_success_uses_the_score_bound(self):
        d = np.zeros(100)
        d[:3], d[3:8] = 1, -1
        check = check_non_inferiority(one_pair(d), 100, 0.1)
        assert check.lower == pytest.approx(bound_by_score(3, 5, 100, stats.norm.ppf(0.95)))
