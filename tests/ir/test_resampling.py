import itertools

import numpy as np
import pytest
from scipy import stats

from benchbench.ir.statistics.resampling import (
    ComparisonError,
    Interval,
    MeanInterval,
    bootstrap_means,
    draw_flips,
    find_common_queries,
    mean_intervals,
)
from tests.ir.simulated import benchmark

NAN = float("nan")


class TestCommonQueries:
    def test_common_queries_are_answered_by_every_run(self):
        assert find_common_queries(np.array([[1, NAN, 0, 1], [0, 1, 0, NAN]])).tolist() == [True, False, True, False]

    def test_it_names_the_run_that_leaves_too_few(self):
        with pytest.raises(
            ComparisonError, match="Only 1 of 3 queries has a value in every compared run; run 1 answered"
        ):
            find_common_queries(np.array([[1, 0, 1], [NAN, NAN, 1]]))

    def test_it_refuses_other_shapes_and_infinite_values(self):
        with pytest.raises(ComparisonError, match="1 dimensions"):
            find_common_queries(np.array([1.0, 2.0]))
        with pytest.raises(ComparisonError, match="run 1 on query 0 is infinite"):
            find_common_queries(np.array([[0, 0], [np.inf, 0]]))


class TestFlips:
    @pytest.mark.parametrize("queries", [2, 3, 8])
    def test_it_enumerates_few_queries_up_to_turning_all_signs(self, queries):
        signs = np.concatenate(list(draw_flips(queries, resamples=2**queries, seed=0))).astype(int).tolist()
        both = {tuple(sign * each for each in row) for row in signs for sign in (1, -1)}
        identity = {(1,) * queries, (-1,) * queries}
        assert both | identity == set(itertools.product((1, -1), repeat=queries))
        assert not both & identity
        assert len(signs) == 2 ** (queries - 1) - 1

    def test_it_draws_as_many_fair_signs_as_asked(self):
        signs = np.concatenate(list(draw_flips(701, resamples=3_000, seed=5)))
        assert signs.shape == (3_000, 701)
        assert set(np.unique(signs)) == {-1, 1}
        error = 1 / np.sqrt(signs.size)
        assert abs(signs.mean()) < 4 * error
        assert abs((signs[:, 1:] * signs[:, :-1]).mean()) < 4 * error


class TestBootstrapMeans:
    def test_bootstrap_draws_the_same_queries_for_every_row(self):
        values = np.random.default_rng(0).random((3, 50))
        values[2] = values[0] - values[1]
        means = bootstrap_means(values, resamples=400, seed=1)
        assert means.shape == (3, 400)
        assert means[2] == pytest.approx(means[0] - means[1], abs=1e-14)
        assert bootstrap_means(np.ones((1, 50)), resamples=400, seed=1) == pytest.approx(1.0)


class TestMeanIntervals:
    def test_it_is_the_percentile_interval_of_scipy(self):
        values = benchmark(np.random.default_rng(2), [0, 0.5], 300)
        for row, personal in zip(values, mean_intervals(values, seed=3, resamples=20_000), strict=True):
            theirs = stats.bootstrap((row,), np.mean, n_resamples=20_000, method="percentile", rng=4)
            tolerance = 0.05 * theirs.standard_error
            assert personal.mean == row.mean()
            assert personal.n == 300
            assert personal.interval.low == pytest.approx(theirs.confidence_interval.low, abs=tolerance)
            assert personal.interval.high == pytest.approx(theirs.confidence_interval.high, abs=tolerance)

    def test_mean_intervals_use_the_queries_each_run_answered(self):
        values = np.array([[1, 0, 1, 0], [1, NAN, 1, 0], [NAN, NAN, 1, NAN], [NAN] * 4, [0.5] * 4])
        complete, piece, one, none, level = mean_intervals(values, seed=0)
        assert (complete.mean, complete.n) == (0.5, 4)
        assert (piece.mean, piece.n) == (2 / 3, 3)
        assert one == MeanInterval(1.0, None, 1)
        assert none == MeanInterval(None, None, 0)
        assert level == MeanInterval(0.5, Interval(0.5, 0.5), 4)

    def test_other_runs_do_not_change_a_run_s_interval(self):
        values = benchmark(np.random.default_rng(2), [0, 0.5, 1])
        [alone] = mean_intervals(values[1:2], seed=0)
        among = mean_intervals(values, seed=0)[1]
        assert [among.interval.low, among.interval.high] == pytest.approx([alone.interval.low, alone.interval.high])
