"""Corrected verdicts: against ppi-python, and unbiased over all samples."""

import warnings

import numpy as np
import pytest

from benchbench.ir.judging.corrected import correct_by_queries
from benchbench.ir.judging.pool import JudgingError

with warnings.catch_warnings():  # it silences every warning of the process as it is imported
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate


def values(seed: int, *, runs: int = 3, queries: int = 400, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Values by a person's grades and by a model's, which is biased and noisy."""
    rng = np.random.default_rng(seed)
    person = np.clip(rng.normal(0.5, 0.25, queries) + rng.normal(0, 0.2, (runs, queries)), 0, 1)
    return person, np.clip(person + rng.normal(0.1, noise, person.shape), 0, 1)


@pytest.mark.parametrize("seed", range(8))
def test_estimate_factor_and_interval_are_those_of_ppi_python(seed):
    person, model = values(seed, noise=0.1 + 0.1 * seed)
    sampled = 60 + 20 * seed
    for pair in correct_by_queries(model, np.where(np.arange(400) < sampled, person, np.nan), seed=1).pairs:
        y, f = person[pair.first] - person[pair.second], model[pair.first] - model[pair.second]
        args = y[:sampled], f[:sampled], f[sampled:]
        assert pair.difference == pytest.approx(ppi_mean_pointestimate(*args).item(), abs=1e-12)
        low, high = (end.item() for end in ppi_mean_ci(*args, alpha=0.05))
        # Ours divides by n − 1 and takes Student's quantile.
        assert pair.interval.high - pair.interval.low == pytest.approx(high - low, rel=0.04)
        assert pair.interval.high - pair.interval.low > high - low
        assert pair.simultaneous.low < pair.interval.low


def test_good_model_adds_effective_queries_and_useless_costs_little():
    person, model = values(3, noise=0.05)
    some = np.where(np.arange(400) < 80, person, np.nan)
    assert correct_by_queries(model, some, seed=1).gain > 80
    by_queries = correct_by_queries(np.random.default_rng(8).random(model.shape), some, seed=1)
    assert all(pair.tuned < 0.15 for pair in by_queries.pairs)
    assert all(pair.effective > 72 for pair in by_queries.pairs)


def test_model_is_ignored_when_people_judged_every_query():
    person, model = values(2)
    for pair in correct_by_queries(model, person, seed=1).pairs:
        assert pair.tuned == 0
        assert pair.difference == pytest.approx((person[pair.first] - person[pair.second]).mean())


def test_verdict_is_corrected_for_model_bias():
    rng = np.random.default_rng(1)
    person, model = values(5)
    model = model + np.array([[0.3], [0.0], [0.0]]) + rng.normal(0, 0.02, model.shape)  # it favours the first run
    by_queries = correct_by_queries(model, np.where(np.arange(400) < 150, person, np.nan), seed=1)
    favoured = next(pair for pair in by_queries.pairs if (pair.first, pair.second) == (0, 1))
    assert (model[0] - model[1]).mean() > 0.2
    assert abs(favoured.difference) < 0.06
    assert len(by_queries.group) > 1


def test_a_clear_best_run_wins():
    person, model = values(4)
    person, model = (np.clip(piece - np.array([[0.0], [0.0], [0.2]]), 0, 1) for piece in (person, model))
    person[0] += 0.15
    by_queries = correct_by_queries(model, np.where(np.arange(400) < 150, person, np.nan), seed=1)
    assert by_queries.group == (0,)
    assert [(pair.first, pair.second, pair.significant) for pair in by_queries.pairs] == [
        (0, 1, True),
        (0, 2, True),
        (1, 2, True),
    ]


def test_a_sample_that_is_too_small_is_refused():
    person, model = values(1)
    with pytest.raises(JudgingError, match="A person has judged 9 queries"):
        correct_by_queries(model, np.where(np.arange(400) < 9, person, np.nan), seed=1)
    with pytest.raises(JudgingError, match="same runs and queries"):
        correct_by_queries(model, person[:, :10], seed=1)
