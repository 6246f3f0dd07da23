"""Ranks of configurations over datasets, against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import friedmanchisquare, rankdata

from benchbench.ir.statistics.across import describe_support, rank_across
from benchbench.ir.statistics.resampling import ComparisonError

TABLES = arrays(float, array_shapes(min_dims=2, max_dims=2, min_side=3, max_side=8), elements=st.integers(0, 4))


@given(TABLES)
def test_ranks_and_test_are_those_of_scipy(values):
    standings = rank_across(values)
    assert standings.mean_ranks == pytest.approx(rankdata(-values, axis=1).mean(axis=0))
    if (values != values[:, :1]).any():
        assert standings.p == pytest.approx(friedmanchisquare(*values.T).pvalue)
    else:
        assert standings.p == 1
    for pair in standings.pairs:
        assert pair.wins + pair.ties + pair.losses == len(values)
        assert pair.p >= standings.least_p - 1e-12
        share = pair.wins / max(1, pair.wins + pair.losses)
        assert pair.interval[0] <= share <= pair.interval[1]


def test_few_datasets_can_show_nothing():
    values = np.array([[0.9, 0.1]] * 3)
    assert describe_support(rank_across(values), ["a", "b"]).startswith(
        "With 3 datasets no pair can be significant: winning on all of them gives p = .25."
    )
    many = rank_across(np.repeat(values, 3, axis=0))
    assert describe_support(many, ["a", "b"]) == "Over 9 datasets, significantly: a beats b."
    with pytest.raises(ComparisonError, match="at least 2 datasets"):
        rank_across(values[:1])
