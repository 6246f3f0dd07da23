"""Agreement of judges, against krippendorff and scikit-learn."""

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from benchbench.ir.judging.agreement import MIN_SHARED, alpha, confusion, shifts
from benchbench.ir.judging.pool import JudgingError

NAN = np.nan


def graded(seed: int) -> np.ndarray:
    """Grades of some judges, who share a truth and leave out some items."""
    rng = np.random.default_rng(seed)
    judges, items, top = rng.integers(2, 6), rng.integers(3, 80), rng.integers(1, 6)
    truth = rng.integers(0, top + 1, items)
    grades = np.where(rng.random((judges, items)) < 0.6, truth, rng.integers(0, top + 1, (judges, items)))
    return np.where(rng.random((judges, items)) < 0.3, NAN, grades.astype(float))


@pytest.mark.parametrize("seed", range(40))
def test_alpha_is_that_of_krippendorff(seed):
    grades = graded(seed)
    grades[:2, :2] = [[0, 1], [1, 1]]  # one value alone has no alpha
    answer = alpha(grades, seed=1)
    assert answer.value == pytest.approx(krippendorff.alpha(grades, level_of_measurement="ordinal"), abs=1e-12)
    assert answer.shared == ((~np.isnan(grades)).sum(axis=0) > 1).sum()
    assert (answer.interval is None) == (answer.shared < MIN_SHARED)
    if answer.interval is not None:
        assert answer.interval.low <= answer.value <= answer.interval.high


@pytest.mark.parametrize("seed", range(40))
def test_kappa_and_confusion_are_those_of_scikit_learn(seed):
    first, second = graded(seed)[:2]
    both = ~np.isnan(first) & ~np.isnan(second)
    answer = confusion(first, second)
    if len(answer.scale) > 1:
        assert answer.counts.tolist() == confusion_matrix(first[both], second[both], labels=answer.scale).tolist()
        expected = cohen_kappa_score(first[both], second[both])
        assert answer.kappa == (None if np.isnan(expected) else pytest.approx(expected, abs=1e-12))
    else:
        assert answer.kappa is None


def test_alpha_intervals_cover_the_true_value_in_95_percent():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 20_000)
    population = np.where(rng.random((2, len(truth))) < 0.7, truth, rng.integers(0, 4, (2, len(truth)))).astype(float)
    true = alpha(population[:, :5_000], seed=1, resamples=30).value
    claimed = 0
    for index in range(150):
        interval = alpha(population[:, 5_000 + index * 100 :][:, :100], seed=index, resamples=400).interval
        claimed += interval.low <= true <= interval.high
    assert 0.89 <= claimed / 150 <= 0.985


def test_constant_grades_have_no_alpha_or_kappa():
    same = np.ones((2, 40))
    assert (alpha(same, seed=1).value, alpha(same, seed=1).interval) == (None, None)
    assert confusion(same[0], same[1]).kappa is None
    assert alpha(np.array([[1.0, NAN], [NAN, 1.0]]), seed=1).shared == 0


def test_shift_compares_a_judge_with_others_on_shared_items():
    strict, mild, third = shifts(np.array([[3.0, 2, NAN, 1], [1.0, 2, 3, NAN], [2.0, 2, NAN, NAN]]))
    assert (strict.mean, strict.items) == (pytest.approx((1.5 + 0) / 2), 2)
    assert (mild.mean, mild.items) == (pytest.approx((-1.5 + 0) / 2), 2)
    assert third.mean == 0
    assert shifts(np.array([[1.0, NAN], [NAN, 1.0]]))[0].mean is None


def test_grades_off_the_scale_are_rejected():
    with pytest.raises(JudgingError, match="not on the scale 0, 1"):
        confusion(np.array([0.0, 2.0]), np.array([0.0, 1.0]), (0.0, 1.0))
