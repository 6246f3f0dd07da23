"""The lead by chance of the best of many runs."""

import numpy as np
import pytest

from benchbench.ir.statistics.resampling import compute_optimism


def draw(rng, runs, queries, likeness=0.8):
    """Values of runs with equal true means, alike as settings of one engine are."""
    common = rng.normal(size=queries)
    return 0.5 + 0.2 * (likeness * common + (1 - likeness) * rng.normal(size=(runs, queries)))


@pytest.mark.parametrize(("runs", "queries"), [(30, 50), (20, 200)])
def test_it_is_the_mean_lead_of_equal_runs(runs, queries):
    rng = np.random.default_rng(7)
    drawn = [draw(rng, runs, queries) for _ in range(400)]
    leads = [one.mean(axis=1).max() - one.mean() for one in drawn]
    estimates = [compute_optimism(one, seed=1) for one in drawn[:20]]
    assert np.mean(estimates) == pytest.approx(np.mean(leads), rel=0.1)


def test_equal_values_have_no_lead():
    assert compute_optimism(np.ones((20, 10)), seed=1) == 0


def test_more_runs_lead_by_more():
    values = draw(np.random.default_rng(1), 40, 100)
    assert compute_optimism(values, seed=1) > compute_optimism(values[:5], seed=1) > 0


def test_weights_of_one_query_leave_the_others_out():
    values = draw(np.random.default_rng(1), 20, 40)
    lead = compute_optimism(values, seed=1, weights=np.r_[np.ones(20), np.zeros(20)])
    assert lead == pytest.approx(compute_optimism(values[:, :20], seed=1), rel=0.1)
