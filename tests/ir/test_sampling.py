"""Draws of queries by demand: weights that sum to it, and weighted sums without bias."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbench.ir.sampling import draw_by_demand, split_by_demand

COUNTS = st.lists(st.integers(1, 10_000), min_size=1, max_size=60)


@given(COUNTS, st.integers(1, 80), st.integers(0, 1000))
def test_weights_sum_to_the_demand(counts, size, seed):
    weights = draw_by_demand(counts, size, seed=str(seed))
    assert len(weights) == min(size, len(counts))
    assert sum(weights.values()) == pytest.approx(sum(counts), rel=1e-12)
    assert all(weight >= counts[index] for index, weight in weights.items()), "nothing is drawn with certainty twice"
    assert draw_by_demand(counts, size, seed=str(seed)) == weights


@given(COUNTS, st.integers(0, 1000))
def test_strata_have_a_third_of_the_demand(counts, seed):
    strata = split_by_demand(counts, 3, seed=str(seed))
    assert sorted(index for piece in strata for index in piece) == list(range(len(counts)))
    order = [counts[index] for piece in strata for index in piece]
    assert order == sorted(counts, reverse=True)
    before = 0
    for number, segment in enumerate(strata):
        for index in segment:
            assert number * sum(counts) <= 3 * before < (number + 1) * sum(counts)
            before += counts[index]


def test_known_draw_takes_frequent_queries_for_certain():
    weights = draw_by_demand([100, 3, 3, 3, 3], 3, seed="x")
    assert weights[0] == 100.0
    assert sorted(weights.values()) == [6.0, 6.0, 100.0]
    assert draw_by_demand([7, 5], 9, seed="x") == {0: 7.0, 1: 5.0}


def test_weighted_sums_are_without_bias():
    """The mean of 4,000 estimates is within four standard errors of the truth, for a value tied to the count."""
    counts = [40, 13, 11, 8, 5, 5, 3, 2, 1, 1, 1, 1]
    values = [0.1, 0.9, 0.4, 0.8, 0.2, 1.0, 0.0, 0.7, 1.0, 0.3, 0.6, 0.9]
    truth = sum(count * value for count, value in zip(counts, values, strict=True))
    estimates = [
        sum(weight * values[index] for index, weight in draw_by_demand(counts, 5, seed=str(seed)).items())
        for seed in range(4000)
    ]
    error = statistics.stdev(estimates) / len(estimates) ** 0.5
    assert abs(statistics.mean(estimates) - truth) < 4 * error
