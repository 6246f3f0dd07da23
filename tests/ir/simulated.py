"""Benchmarks of which the truth is known, shaped like those of retrieval; perf/significance.py uses them too.

A value is the nDCG@10 of a query with one relevant document: 1 at rank 1, .63 at rank 2, … .29 at rank 10, 0 below. The
log of its rank is the query's difficulty, which all runs share, less the run's ability, plus luck. So values are
discrete, a fifth are 0 and four in ten are 1, and two runs correlate by .7.
"""

import random
from collections.abc import Sequence

import numpy as np

RUNS, QUERIES = 16, 100
MEDIAN, SPREAD, LUCK = 1.0, 1.6, 0.8
GRID = np.linspace(-8, 8, 20_001)
DENSITY = np.exp(-(GRID**2) / 2) / np.exp(-(GRID**2) / 2).sum()


def gain(log_rank: np.ndarray) -> np.ndarray:
    rank = np.floor(np.exp(np.clip(log_rank, 0, 9)))
    return np.where(rank <= 10, 1 / np.log2(1 + rank), 0.0)


def benchmark(rng: np.random.Generator, abilities: Sequence[float], queries: int = QUERIES) -> np.ndarray:
    """Values, shape (runs, queries). Runs of equal ability differ by luck alone."""
    difficulty = rng.normal(MEDIAN, SPREAD, queries)
    return gain(difficulty + rng.normal(0, LUCK, (len(abilities), queries)) - np.array(abilities)[:, None])


def true_mean(ability: float) -> float:
    """What a run of that ability has on average over all queries there could be."""
    return float(gain(MEDIAN + np.hypot(SPREAD, LUCK) * GRID - ability) @ DENSITY)


def skewed(rng: np.random.Generator, runs: int = RUNS, queries: int = QUERIES) -> np.ndarray:
    """Values, shape (runs, queries), of equal true means but skewed differences.

    Every second run finds nothing on one query of 20, and makes up for it by its ability on the others.
    """
    abilities = np.zeros(runs)
    abilities[1::2] = COMPENSATION
    values = benchmark(rng, abilities.tolist(), queries)
    values[1::2][rng.random((runs // 2, queries)) < 0.05] = 0
    return values


_ABILITIES = np.linspace(0, 0.5, 6)
COMPENSATION = float(np.interp(true_mean(0) / 0.95, [true_mean(ability) for ability in _ABILITIES], _ABILITIES))


def random_case(seed):
    """Forty queries with graded, negative and zero grades, unicode ids, empty rankings and truths of any size."""
    pick = random.Random(seed)
    documents = [f"文書-{number}-é" for number in range(60)]
    rankings = [pick.sample(documents, pick.choice([0, 1, 7, 30])) for _ in range(40)]
    truths = [
        {document: pick.choice([-1, 0, 1, 2, 3, 4]) for document in pick.sample(documents, pick.choice([1, 3, 20, 60]))}
        for _ in range(40)
    ]
    return rankings, truths
