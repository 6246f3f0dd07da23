"""Bounds of differences between runs: every filling of the holes is tried."""

import itertools

import numpy as np
import pytest

from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import GradedRankings, Measure, evaluate
from tests.ir.judging.drawn import MEASURES, drawn


def fillings(pool: Pool, query: int, truth: dict[str, int], top: int) -> list[dict[str, int]]:
    holes = [document for document in pool.documents[query] if document not in truth]
    return [
        truth | dict(zip(holes, grades, strict=True)) for grades in itertools.product(range(top + 1), repeat=len(holes))
    ]


def values(measure: Measure, rankings: list, query: int, truth: dict[str, int]) -> np.ndarray:
    return np.array(
        [evaluate([measure], GradedRankings.from_rankings([run[query]], [truth])).item() for run in rankings]
    )


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.thorough
def test_mean_difference_bounds_match_brute_force_over_fillings(seed):
    rankings, truths, top = drawn(seed)
    for measure in MEASURES:
        pool = Pool.from_rankings(rankings, depth=measure.cutoff)
        judging = Judging(pool, measure, range(top + 1), truths, draws=2)
        minimum, greatest = judging.compute_bounds()
        ends = []
        for query, truth in enumerate(truths):
            outcomes = [values(measure, rankings, query, filled) for filled in fillings(pool, query, truth, top)]
            differences = np.array([outcome[judging.pairs[0]] - outcome[judging.pairs[1]] for outcome in outcomes])
            ends.append((differences.min(axis=0), differences.max(axis=0)))
        lowest, highest = np.mean(ends, axis=0)
        np.testing.assert_allclose(minimum, lowest, atol=1e-9, err_msg=str(measure))
        np.testing.assert_allclose(greatest, highest, atol=1e-9, err_msg=str(measure))


@pytest.mark.parametrize("seed", range(10))
def test_average_precision_bounds_hold_with_many_holes(seed, monkeypatch):
    monkeypatch.setattr("benchbench.ir.judging.differences.MAX_ENUMERATED", 0)
    rankings, truths, _ = drawn(seed)
    for measure in (Measure("AP"), Measure("AP", 3)):
        pool = Pool.from_rankings(rankings, depth=measure.cutoff)
        judging = Judging(pool, measure, [0, 1], truths, draws=2)
        minimum, greatest = judging.compute_bounds()
        first, second = judging.pairs
        for filled in itertools.product(*(fillings(pool, query, truth, 1) for query, truth in enumerate(truths))):
            outcome = np.mean([values(measure, rankings, query, truth) for query, truth in enumerate(filled)], axis=0)
            assert (outcome[first] - outcome[second] >= minimum - 1e-9).all()
            assert (outcome[first] - outcome[second] <= greatest + 1e-9).all()
