"""Stress test of holes, and calibration of a model as a judge."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from benchbench.ir.judging.calibration import calibrate, kendall, order_effect
from benchbench.ir.judging.pool import JudgingError, Pool
from benchbench.ir.judging.stress import HOLDS, NO_CLAIM, nearest_judged, stress
from benchbench.ir.measures import Measure

P3 = Measure("P", 3)


def rankings(queries: int = 30) -> list:
    """The first run's documents are judged, the second's mostly not."""
    return [[list("abc")] * queries, [list("xyz")] * queries]


def test_a_verdict_that_rests_on_holes_falls_and_the_line_says_when():
    pool, truths = Pool.of(rankings()), [{"a": 1, "b": 1, "c": 0, "x": 1} for _ in range(30)]
    model = [{"y": 1, "z": 1} for _ in truths]
    told = stress(pool, P3, truths, [0, 1], seed=1, model=model)
    groups = {trial.filling: trial.group for trial in told.trials if trial.skipped is None}
    assert groups["not relevant"] == (0, 1)  # every query has the same difference: nothing to judge by
    against = stress(pool, P3, truths, [0, 1], seed=1, baseline=1)
    for none_better, tried in ((told, 3), (against, 2)):
        assert none_better.claims_nothing
        assert none_better.trials[-1].skipped == NO_CLAIM
        assert f"could be tried ({tried} of 5)" in none_better.line
    truths[0]["c"] = truths[1]["b"] = 1
    truths[2]["a"] = 0
    told = stress(pool, P3, truths, [0, 1], seed=1, model=model)
    groups = {trial.filling: trial.group for trial in told.trials if trial.skipped is None}
    assert groups == {"not relevant": (0,), "left out": (0,), "model": (1,), "worst case": (0, 1)}
    assert told.line == (
        "The verdict falls if unjudged documents get the model's grades, or turn out as badly as they can."
    )
    assert not told.holds
    assert next(trial for trial in told.trials if trial.filling == "nearest judged").skipped


def test_without_holes_every_verdict_holds():
    pool = Pool.of(rankings())
    truths = [dict.fromkeys("xyz", 0) | {"a": 1, "b": 1, "c": place % 2} for place in range(30)]
    told = stress(pool, P3, truths, [0, 1], seed=1, vectors=lambda document: np.ones(2, np.float32), model=truths)
    assert [trial.group for trial in told.trials] == [(0,)] * 5
    assert (told.line, told.holds) == (HOLDS, True)
    against = stress(pool, P3, truths, [0, 1], seed=1, baseline=1)
    assert {trial.group for trial in against.trials if trial.skipped is None} == {(1,)}
    assert against.line == "The verdict holds under every filling of the holes that could be tried (3 of 5)."
    assert against.holds


def test_a_measure_of_the_library_has_no_worst_case_and_says_so():
    pool = Pool.of(rankings())
    truths = [{"a": 1, "b": place % 2} for place in range(30)]
    told = stress(pool, Measure.parse("RBP(p=0.5)"), truths, [0, 1], seed=1)
    assert "ir_measures" in told.trials[-1].skipped
    assert told.trials[0].group == (0,)


def test_a_hole_gets_the_grade_of_the_judged_documents_nearest_to_it():
    vectors = {"a": [1, 0], "b": [0.9, 0.1], "c": [0.95, 0.05], "d": [0, 1], "x": [1, 0.02], "y": [0, 1]}
    pool = Pool.of([[list("abcdxyz")]])
    truths = [{"a": 2, "b": 2, "c": 2, "d": 0}]
    filled = nearest_judged(
        pool, truths, [0, 1, 2], lambda d: np.array(vectors[d], np.float32) if d in vectors else None
    )
    assert filled == [truths[0] | {"x": 2, "y": 0}]


def test_calibration_tells_agreement_and_bias_by_grade():
    rng = np.random.default_rng(2)
    person = rng.integers(0, 3, 200)
    model = np.where(rng.random(200) < 0.8, person, np.minimum(person + 1, 2))
    told = calibrate(person.tolist(), model.tolist(), [0, 1, 2], seed=1)
    assert told.alpha.value > 0.7
    assert told.alpha.interval.low < told.alpha.value
    assert [bias.items for bias in told.bias] == np.bincount(person).tolist()
    assert told.bias[0].mean == pytest.approx((model - person)[person == 0].mean())
    assert told.bias[2].mean == 0
    assert told.overall.mean == pytest.approx((model - person).mean())
    assert told.confusion.counts.sum() == 200
    few = calibrate([0, 1], [1, 1], [0, 1, 2], seed=1)
    assert few.alpha.interval is None
    assert few.bias[2].mean is None
    with pytest.raises(JudgingError, match="same pairs"):
        calibrate([0], [], [0, 1], seed=1)


def test_the_effect_on_the_order_of_runs_is_kendalls_tau():
    rng = np.random.default_rng(3)
    for _ in range(20):
        first, second = rng.integers(0, 5, (2, 7)).astype(float)
        assert kendall(first, second) == pytest.approx(kendalltau(first, second).statistic)
    person, model = rng.random((4, 20)), rng.random((4, 20))
    person[0, 3] = np.nan
    told = order_effect(person, model)
    there = np.delete(np.arange(20), 3)
    assert told.tau == pytest.approx(kendalltau(person[:, there].mean(axis=1), model[:, there].mean(axis=1)).statistic)
    assert told.values == pytest.approx(np.abs(model - person)[:, there].mean())
    assert told.queries == 19
    assert kendall(np.ones(3), np.arange(3.0)) is None
