"""Corrected verdicts: against ppi-python, and unbiased over all samples."""

import itertools
import warnings

import numpy as np
import pytest

from benchbench.ir.judging.corrected import corrected_by_queries
from benchbench.ir.judging.corrected_pairs import corrected_by_pairs
from benchbench.ir.judging.pool import Item, JudgingError, Pool
from benchbench.ir.measures import GradedRankings, Measure, evaluate

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
    told = corrected_by_queries(model, np.where(np.arange(400) < sampled, person, np.nan), seed=1)
    for pair in told.pairs:
        y, f = person[pair.first] - person[pair.second], model[pair.first] - model[pair.second]
        args = y[:sampled], f[:sampled], f[sampled:]
        assert pair.difference == pytest.approx(ppi_mean_pointestimate(*args).item(), abs=1e-12)
        low, high = (end.item() for end in ppi_mean_ci(*args, alpha=0.05))
        # Ours divides by n − 1 and takes Student's quantile.
        assert pair.interval.high - pair.interval.low == pytest.approx(high - low, rel=0.04)
        assert pair.interval.high - pair.interval.low > high - low
        assert pair.simultaneous.low < pair.interval.low


def test_a_good_model_makes_few_judged_queries_count_for_more_and_a_useless_one_costs_little():
    person, model = values(3, noise=0.05)
    some = np.where(np.arange(400) < 80, person, np.nan)
    assert corrected_by_queries(model, some, seed=1).gain > 80
    noise = np.random.default_rng(8).random(model.shape)
    told = corrected_by_queries(noise, some, seed=1)
    assert all(pair.tuned < 0.15 for pair in told.pairs)
    assert all(pair.effective > 72 for pair in told.pairs)


def test_with_all_queries_judged_by_a_person_the_model_is_not_asked():
    person, model = values(2)
    told = corrected_by_queries(model, person, seed=1)
    for pair in told.pairs:
        assert pair.tuned == 0
        assert pair.difference == pytest.approx((person[pair.first] - person[pair.second]).mean())


def test_a_bias_of_the_model_is_taken_out_of_the_verdict():
    rng = np.random.default_rng(1)
    person, model = values(5)
    model = model + np.array([[0.3], [0.0], [0.0]]) + rng.normal(0, 0.02, model.shape)  # it favours the first run
    told = corrected_by_queries(model, np.where(np.arange(400) < 150, person, np.nan), seed=1)
    favoured = next(pair for pair in told.pairs if (pair.first, pair.second) == (0, 1))
    assert favoured.by_model > 0.2
    assert abs(favoured.difference) < 0.06
    assert told.winner is None


def test_a_baseline_makes_the_family_and_a_clear_best_run_wins():
    person, model = values(4)
    person, model = (np.clip(part - np.array([[0.0], [0.0], [0.2]]), 0, 1) for part in (person, model))
    person[0] += 0.15
    some = np.where(np.arange(400) < 150, person, np.nan)
    assert corrected_by_queries(model, some, seed=1).winner == 0
    against = corrected_by_queries(model, some, seed=1, baseline=2)
    assert [(pair.first, pair.second, pair.better) for pair in against.pairs] == [(0, 2, 1), (1, 2, 1)]
    assert against.group is None


def test_a_sample_that_is_too_small_is_refused():
    person, model = values(1)
    with pytest.raises(JudgingError, match="9 queries are judged by a person"):
        corrected_by_queries(model, np.where(np.arange(400) < 9, person, np.nan), seed=1)
    with pytest.raises(JudgingError, match="same runs and queries"):
        corrected_by_queries(model, person[:, :10], seed=1)


def pairs_of(seed: int) -> tuple[Pool, list, list]:
    rng = np.random.default_rng(seed)
    rankings = [[rng.permutation(12)[:5].tolist() for _ in range(30)] for _ in range(3)]
    person = [
        {document: int(rng.random() < 0.4) * int(rng.integers(1, 3)) for document in range(12)} for _ in range(30)
    ]
    model = [
        {document: grade if rng.random() < 0.7 else int(rng.integers(0, 3)) for document, grade in truth.items()}
        for truth in person
    ]
    return Pool.of(rankings), person, model


def sample(pool: Pool, person: list, size: int, seed: int) -> dict[Item, float]:
    numbers = np.random.default_rng(seed).permutation(pool.size)[:size].tolist()
    return {item: person[item.query][item.document] for item in map(pool.item, numbers)}


def test_with_every_pair_in_the_sample_a_sum_of_gains_is_the_measure_itself():
    pool, person, model = pairs_of(1)
    told = corrected_by_pairs(pool, Measure("P", 5), model, sample(pool, person, pool.size, 1), 1.0, seed=1)
    rows = [evaluate([Measure("P", 5)], GradedRankings.of(run, person))[0] for run in pool.rankings()]
    for pair in told.pairs:
        assert pair.difference == pytest.approx((rows[pair.first] - rows[pair.second]).mean())
    assert told.estimand == "mean difference in P@5 by the person's grades"


@pytest.mark.parametrize("measure", [Measure("P", 5), Measure("nDCG", 5)])
def test_over_many_samples_of_pairs_the_estimate_is_the_estimand(measure):
    pool, person, model = pairs_of(2)
    size = pool.size // 4
    estimates = [
        [
            pair.difference
            for pair in corrected_by_pairs(
                pool, measure, model, sample(pool, person, size, seed), size / pool.size, seed=1, resamples=100
            ).pairs
        ]
        for seed in range(150)
    ]
    graded = [[GradedRankings.of(run, truths) for run in pool.rankings()] for truths in (person, model)]
    if measure.name == "P":
        true = np.stack([evaluate([measure], run)[0] for run in graded[0]])
    else:  # the person's gains over the model's ideal
        ideal = graded[1][0].ideal_dcg[:, 4]
        base = np.where(ideal > 0, ideal, 1)
        true = np.stack([np.where(ideal > 0, run.sums.dcg[:, 4] / base, 0) for run in graded[0]])
    wanted = [(true[a] - true[b]).mean() for a, b in itertools.combinations(range(3), 2)]
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - wanted) < 4 * error + 0.003).all()


def test_pairs_that_a_person_judged_before_are_taken_as_they_are_and_the_sample_is_of_the_others():
    pool, person, model = pairs_of(5)
    known = [{document: grade for document, grade in truth.items() if document % 3 == 0} for truth in person]
    open_pairs = [item for item in map(pool.item, range(pool.size)) if item.document % 3]
    size, estimates = len(open_pairs) // 3, []
    for seed in range(150):
        chosen = np.random.default_rng(seed).permutation(len(open_pairs))[:size].tolist()
        some = {open_pairs[place]: person[open_pairs[place].query][open_pairs[place].document] for place in chosen}
        told = corrected_by_pairs(
            pool, Measure("P", 5), model, some, size / len(open_pairs), seed=1, known=known, resamples=100
        )
        estimates.append([pair.difference for pair in told.pairs])
    true = np.stack([evaluate([Measure("P", 5)], GradedRankings.of(run, person))[0] for run in pool.rankings()])
    wanted = [(true[a] - true[b]).mean() for a, b in itertools.combinations(range(3), 2)]
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - wanted) < 4 * error).all()
    with pytest.raises(JudgingError, match="was judged before"):
        corrected_by_pairs(pool, Measure("P", 5), model, sample(pool, person, 60, 1), 0.3, seed=1, known=known)


def test_what_a_sample_of_pairs_cannot_correct_is_refused_with_the_way_out():
    pool, person, model = pairs_of(3)
    some = sample(pool, person, 60, 1)
    with pytest.raises(JudgingError, match=r"AP is no sum of grades.*whole queries"):
        corrected_by_pairs(pool, Measure("AP"), model, some, 0.1, seed=1)
    with pytest.raises(JudgingError, match="at least 30"):
        corrected_by_pairs(pool, Measure("P", 5), model, sample(pool, person, 29, 1), 0.1, seed=1)
    del model[0][pool.documents[0][0]]
    with pytest.raises(JudgingError, match="has not graded every pair"):
        corrected_by_pairs(pool, Measure("P", 5), model, some, 0.1, seed=1)
