import numpy as np
import pytest

from benchbench.ir.statistics.effects import Contrast, contrast_intervals, contrasts
from benchbench.ir.statistics.resampling import ComparisonError
from benchbench.ir.statistics.significance import compare
from tests.ir.simulated import benchmark

NAN = float("nan")
MODES = ("dense", "hybrid")


def effects(values, configurations) -> dict[tuple[str, object], Contrast]:
    axes = dict.fromkeys(axis for configuration in configurations for axis in configuration)
    asked = [one for axis in axes for one in contrasts(np.array(values, float), configurations, axis)]
    return {(effect.axis, effect.value): effect for effect in asked}


class TestContrasts:
    def test_it_averages_over_runs_that_are_equal_but_for_the_axis(self):
        configurations = [{"mode": mode, "rerank": rerank} for mode in MODES for rerank in (False, True)]
        found = effects([[0.1, 0.3], [0.4, 0.6], [0.2, 0.2], [0.9, 0.5]], configurations)
        assert set(found) == {("mode", "hybrid"), ("rerank", True)}
        assert found["rerank", True].differences.mean() == pytest.approx((0.3 + 0.5) / 2)
        assert found["mode", "hybrid"].differences.mean() == pytest.approx((0.0 + 0.2) / 2)
        assert found["mode", "hybrid"].reference == "dense"
        assert found["mode", "hybrid"].contexts == 2
        assert len(found["mode", "hybrid"].differences) == 2

    def test_runs_without_a_counterpart_do_not_count(self):
        configurations = [
            {"mode": "dense", "top": 10},
            {"mode": "dense", "top": 50},
            {"mode": "hybrid", "top": 50},
            {"mode": "hybrid", "top": 90},
        ]
        found = effects([[0, 0], [0.1, 0.1], [0.4, 0.4], [1, 1]], configurations)
        assert found["mode", "hybrid"].contexts == 1
        assert found["mode", "hybrid"].differences.mean() == pytest.approx(0.3)
        assert found["top", 50].differences.mean() == pytest.approx(0.1)
        assert ("top", 90) not in found

    def test_an_absent_axis_is_none_and_repeated_runs_count_as_one(self):
        configurations = [{"mode": "dense"}, {"mode": "dense", "threshold": 0.5}, {"mode": "dense", "threshold": None}]
        found = effects([[0, 0.2], [0.5, 0.5], [0.4, 0.2]], configurations)
        assert found.keys() == {("threshold", 0.5)}
        assert found["threshold", 0.5].reference is None
        assert found["threshold", 0.5].differences.mean() == pytest.approx(0.5 - 0.2)

    def test_the_interval_of_two_runs_is_that_of_their_comparison(self):
        values = benchmark(np.random.default_rng(1), [0, 0.4])
        values[1, 7] = NAN
        [effect] = contrasts(values, [{"mode": mode} for mode in MODES], "mode")
        [interval] = contrast_intervals([effect], seed=6)
        pair = compare(values, seed=6).pair(1, 0)
        assert effect.differences.mean() == pytest.approx(pair.difference)
        assert len(effect.differences) == 99
        assert interval.low == pytest.approx(pair.interval.low)
        assert interval.high == pytest.approx(pair.interval.high)

    def test_runs_that_differ_in_nothing_have_no_effects(self):
        assert effects([[0, 1], [1, 1]], [{"mode": "dense"}] * 2) == {}

    def test_it_refuses_another_number_of_configurations(self):
        with pytest.raises(ComparisonError, match="There are 2 runs, but 1 configurations"):
            contrasts(np.array([[0, 1], [1, 1]]), [{}], "mode")
