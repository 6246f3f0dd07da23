"""Weighted means and their verdict: equal weights change no bit, and every figure agrees with an independent one."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from benchbench.ir.demand import is_weight, scale_weights, weigh
from benchbench.ir.measures import mean
from benchbench.ir.profiles import Mean
from benchbench.ir.slices import MINIMUM, Slice, find_reversals, find_weak_slices
from benchbench.ir.statistics.effects import compute_contrasts, contrast_intervals
from benchbench.ir.statistics.resampling import ComparisonError, mean_intervals
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import check_non_inferiority, find_verdict
from tests.ir.simulated import benchmark

ALL = {"has_relevant": np.ones(40, bool)}


def simulate(seed: int = 3, runs: int = 4, queries: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return values (runs, queries) in steps of .05, and weights as of a log: few queries with most of the demand."""
    rng = np.random.default_rng(seed)
    values = np.round(rng.random((runs, queries)) * 0.7 * 20) / 20 + np.linspace(0, 0.2, runs)[:, None]
    return values, np.ceil(rng.pareto(1.2, queries) * 10 + 1)


@pytest.mark.parametrize("weight", [1.0, 7.0, 0.3])
@pytest.mark.parametrize("baseline", [None, 0])
def test_equal_weights_change_no_bit(weight, baseline):
    values, _ = simulate()
    values[1, 3] = np.nan
    equal = np.full(40, weight)
    assert compare(values, seed=1, baseline=baseline, weights=equal) == compare(values, seed=1, baseline=baseline)
    assert mean_intervals(values, seed=1, weights=equal) == mean_intervals(values, seed=1)
    weighted, plain = (mean(values, **ALL, weights=weights).values.tolist() for weights in (equal, None))
    assert weighted == plain
    assert weigh(values[1], equal) == weigh(values[1]) == float(np.nanmean(values[1]))


def test_only_queries_that_all_answered_need_equal_weights():
    values, _ = simulate()
    values[2, 0] = np.nan
    weights = np.array([50.0, *[2.0] * 39])
    assert compare(values, seed=1, weights=weights) == compare(values, seed=1)


@pytest.mark.parametrize("unit", [1000, 1 / 1024, 8])
def test_the_unit_of_weights_does_not_matter(unit):
    values, weights = simulate()
    first, second = (compare(values, seed=1, weights=weights * factor) for factor in (1, unit))
    assert [pair.p_adjusted for pair in first.pairs] == [pair.p_adjusted for pair in second.pairs]
    assert [pair.difference for pair in first.pairs] == pytest.approx([pair.difference for pair in second.pairs])
    assert [pair.standard_error for pair in first.pairs] == pytest.approx([one.standard_error for one in second.pairs])


def test_means_are_those_of_numpy():
    values, weights = simulate()
    values[1, 3] = np.nan
    computed = mean(values, **ALL, weights=weights).values
    present = ~np.isnan(values)
    expected = [np.average(row[mask], weights=weights[mask]) for row, mask in zip(values, present, strict=True)]
    assert computed == pytest.approx(expected, abs=1e-15)
    assert [weigh(row, weights) for row in values] == pytest.approx(expected)
    judged = np.array([0, 3, 5])
    assert Mean.BENCHMARK.compute(values[0, :3], judged, weights[:3]) == pytest.approx(
        np.average(values[0, :3], weights=weights[:3])
    )
    assert Mean.MACRO.compute(values[0, :3], judged, weights[:3]) == pytest.approx(values[0, :3].mean())
    comparison = compare(np.delete(values, 1, axis=0), seed=1, weights=weights)
    assert comparison.means == pytest.approx(np.average(np.delete(values, 1, axis=0), axis=1, weights=weights))


def test_whole_weights_repeat_a_query_in_means_alone():
    """The mean is that over repeated queries, but its error is not: repeating a query adds no evidence."""
    values, _ = simulate(runs=2)
    counts = np.array([1, 2, 5, 8] * 10)
    weighted = compare(values, seed=1, weights=counts.astype(float))
    repeated = compare(np.repeat(values, counts, axis=1), seed=1)
    (pair,), (twin,) = weighted.pairs, repeated.pairs
    assert pair.difference == pytest.approx(twin.difference)
    assert (weighted.n, repeated.n, round(weighted.effective, 2)) == (40, 160, round(160**2 / (94 * 10), 2))
    assert pair.standard_error > 1.9 * twin.standard_error
    assert pair.effect == pytest.approx(twin.effect, rel=0.02)
    assert (pair.improved, pair.worsened) == pytest.approx((twin.wins / 160, twin.losses / 160))


def test_family_p_values_agree_with_an_own_recomputation():
    """All 2^(n - 1) patterns of signs of w_i d_i, and the greatest |sum| / norm of the family in each."""
    values, weights = simulate(runs=3, queries=9)
    weights = weights**0.25
    comparison = compare(values, seed=1, weights=weights)
    pairs = [(0, 1), (0, 2), (1, 2)]
    products_ = np.array([(values[i] - values[j]) * weights for i, j in pairs])
    norms = np.sqrt((products_**2).sum(axis=1))
    signs = np.array([(1, *remaining) for remaining in product((1, -1), repeat=8)])
    greatest = (np.abs(signs @ products_.T) / norms).max(axis=1)
    observed = np.abs(products_.sum(axis=1)) / norms
    expected = [(greatest >= r - 1e-9).mean() for r in observed]
    assert [pair.p_adjusted for pair in comparison.pairs] == pytest.approx(expected)
    assert comparison.exact
    assert comparison.critical is not None


def test_standard_error_is_that_of_the_ratio_estimator():
    """By the linearised variance, and by the spread of the bootstrap that draws queries with their weights."""
    values, weights = simulate(runs=2, queries=300)
    (pair,) = compare(values, seed=1, weights=weights).pairs
    d = values[0] - values[1]
    ratio = np.average(d, weights=weights)
    shares = weights / weights.sum()
    expected = math.sqrt(300 / 299 * float((shares**2 * (d - ratio) ** 2).sum()))
    assert pair.standard_error == pytest.approx(expected)
    assert pair.effect == pytest.approx(ratio / math.sqrt(np.average((d - ratio) ** 2, weights=weights) * 300 / 299))
    rng = np.random.default_rng(5)
    drawn = rng.integers(0, 300, (4000, 300))
    means = (d[drawn] * weights[drawn]).sum(axis=1) / weights[drawn].sum(axis=1)
    assert pair.standard_error == pytest.approx(means.std(), rel=0.25)
    assert [pair.interval.low, pair.interval.high] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.01)
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert pair.p_t == pytest.approx(2 * stats.t.sf(abs(ratio / expected), effective - 1))


@pytest.mark.parametrize("seed", range(12))
def test_simultaneous_intervals_exclude_0_only_for_significant_pairs(seed):
    """And their error is that of the ratio estimator over two more queries of weight 1 that differ by ± .1."""
    values, weights = simulate(seed, runs=3, queries=60)
    weights = np.sqrt(weights)
    comparison = compare(values, seed=1, weights=weights)
    u = np.append(weights / weights.mean(), [1, 1])
    for pair in comparison.pairs:
        d = np.append(values[pair.first] - values[pair.second], [0.1, -0.1])
        ratio = (u * d).sum() / 62
        error = math.sqrt(float((u**2 * (d - ratio) ** 2).sum()) / 61 / 62) * 62 / 60
        assert pair.error == pytest.approx(error)
        assert pair.simultaneous is not None
        low, high = pair.simultaneous.low, pair.simultaneous.high
        assert high - low >= 2 * comparison.critical * error * 0.5
        assert pair.significant == (low > 0 or high < 0)
        assert pair.significant == (pair.p_adjusted <= 0.05 and not pair.held_back)
        mirrored = pair.reversed
        assert (mirrored.improved, mirrored.worsened) == (pair.worsened, pair.improved)


def test_demand_of_few_queries_decides_nothing():
    """Two queries with most of the demand do not differ: however clear the others are, they bound nothing."""
    values, _ = simulate(runs=2, queries=200)
    values[1, 2:] = values[0, 2:] + 0.1 + np.random.default_rng(1).random(198) / 20
    values[1, :2] = values[0, :2]
    assert compare(values, seed=1).pairs[0].significant
    comparison = compare(values, seed=1, weights=np.array([10_000.0, 10_000.0, *[1.0] * 198]))
    (pair,) = comparison.pairs
    assert (comparison.critical, pair.simultaneous, pair.detectable) == (None, None, None)
    assert (pair.significant, pair.p_adjusted) == (False, 1)
    assert comparison.effective < 2.1
    assert find_verdict(comparison).winner is None


def test_weights_keep_the_error_rate():
    """Of 300 comparisons of 4 equal runs at most about 5 % have a significant pair, under very unequal weights."""
    errors = covered = 0
    for seed in range(300):
        rng = np.random.default_rng((11, seed))
        values, weights = benchmark(rng, [0] * 4), rng.pareto(2.5, 100) + 0.1
        comparison = compare(values, seed=seed, resamples=500, weights=weights)
        errors += any(pair.significant for pair in comparison.pairs)
        covered += all(
            one.simultaneous is None or one.simultaneous.low <= 0 <= one.simultaneous.high for one in comparison.pairs
        )
    assert errors <= 24  # 15 are expected; P(more than 24) < 1 %
    assert covered == 300 - errors


def test_slices_are_weighted():
    rng = np.random.default_rng(2)
    values, weights = rng.random(60), rng.pareto(5, 60) + 0.5
    inside = np.arange(60) < 30
    values[inside] *= 0.3
    slices = [Slice("kind", "a", inside, False), Slice("kind", "b", ~inside, False)]
    (weak,) = find_weak_slices(values, slices, weights)
    assert weak.mean == pytest.approx(np.average(values[inside], weights=weights[inside]))
    assert weak.other_mean == pytest.approx(np.average(values[~inside], weights=weights[~inside]))
    (same,), (plain,) = find_weak_slices(values, slices, np.full(60, 3.0)), find_weak_slices(values, slices)
    assert (same.mean, same.other_mean, same.p) == (plain.mean, plain.other_mean, plain.p)
    # One heavy query turns the order over all queries, though neither slice is led by that run.
    first, second = np.zeros(2 * MINIMUM + 1), np.full(2 * MINIMUM + 1, 0.1)
    first[-1], second[-1] = 1, 0
    half = np.arange(2 * MINIMUM + 1)
    pieces = [Slice("kind", name, half % 2 == n, False) for n, name in enumerate("ab")]
    heavy = np.ones(2 * MINIMUM + 1)
    heavy[-1] = 100
    assert find_reversals(first, second, pieces) == []
    assert find_reversals(first, second, pieces, heavy) == []


def test_effects_of_axes_are_weighted():
    values, weights = simulate(runs=4)
    configurations = [{"a": a, "b": b} for a in (1, 2) for b in (1, 2)]
    (contrast,) = compute_contrasts(values, configurations, "a")
    assert weigh(contrast.differences, weights) == pytest.approx(
        np.average((values[2] + values[3] - values[0] - values[1]) / 2, weights=weights)
    )
    (interval,) = contrast_intervals([contrast], seed=1, weights=weights)
    assert interval.low < weigh(contrast.differences, weights) < interval.high
    assert contrast_intervals([contrast], seed=1, weights=np.full(40, 9.0)) == contrast_intervals([contrast], seed=1)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "1", None, 1e-10, 1e13])
def test_weights_are_positive_numbers(value):
    assert not is_weight(value)
    assert is_weight(3)
    assert is_weight(1e-9)


def test_scaled_weights_have_the_mean_one():
    scaled = scale_weights(np.array([1.0, 3.0]))
    assert scaled is not None
    assert scaled.tolist() == [0.5, 1.5]
    assert scale_weights(None) is None
    assert scale_weights(np.array([])) is None


def test_equal_values_are_equal_under_any_weights():
    """Weights that sum with rounding make no mean of ones differ from another, in slices of any demand."""
    inside = np.arange(60) < 30
    slices = [Slice("kind", "a", inside, False), Slice("kind", "b", ~inside, False)]
    for seed in range(20):
        weights = np.random.default_rng(seed).integers(1, 1000, 60).astype(float)
        assert weigh(np.ones(60), weights) == 1
        assert find_weak_slices(np.full(60, 0.7), slices, weights) == []
        assert find_weak_slices(np.ones(60), slices, weights) == []


@pytest.mark.parametrize("greatest", [100, 1e3, 1e6, 1e12])
def test_one_query_with_all_demand_bounds_nothing(greatest):
    """Its own value leaves no spread, from which no verdict, bound, weak slice or number of queries follows."""
    values = np.random.default_rng(1).random((2, 40)) / 4
    values[1] += 0.3  # every query is better
    weights = np.array([greatest, *[1.0] * 39])
    assert compare(values, seed=1).pairs[0].significant
    comparison = compare(values, seed=1, weights=weights)
    (pair,) = comparison.pairs
    assert (pair.significant, pair.simultaneous, find_verdict(comparison).more_queries) == (False, None, (None,))
    with pytest.raises(ComparisonError, match="One query has nearly all the demand"):
        check_non_inferiority(pair, comparison.effective, 0.05)
    half = np.arange(40) < 20
    assert find_weak_slices(-values[0], [Slice("kind", "a", half, False)], weights) == []
