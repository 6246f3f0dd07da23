"""Rankings and truths drawn at random, for judging."""

import random

import numpy as np

from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import Measure

MEASURES = [
    *(Measure(name, k) for name in ("P", "R", "nDCG", "AP", "RR", "Success", "Hits") for k in (1, 3)),
    *(Measure(name) for name in ("nDCG", "AP", "RR", "Hits")),
]


def drawn(seed: int, *, documents: str = "abcde", queries: int = 2, runs: int = 3) -> tuple[list, list, int]:
    """Rankings, truths with few grades, and the highest grade."""
    pick = random.Random(seed)
    rankings = [[pick.sample(documents, pick.choice([1, 3, 4])) for _ in range(queries)] for _ in range(runs)]
    top = pick.choice([1, 2])
    truths = [
        {document: pick.randint(-1, top) for document in pick.sample(documents + "xy", pick.choice([1, 3, 4]))}
        for _ in range(queries)
    ]
    return rankings, truths, top


NDCG = Measure("nDCG", 5)


def benchmark(seed: int, *, queries: int = 40, gap: float = 1.5) -> tuple[list, list]:
    """Rankings of 3 runs, the last of which puts relevant documents higher, and the grades of every document."""
    rng = np.random.default_rng(seed)
    grades = np.where(rng.random((queries, 15)) < 0.3, rng.integers(1, 3, (queries, 15)), 0)
    truths = [dict(enumerate(row)) for row in grades.tolist()]
    rankings = [
        [sorted(truth, key=lambda document: -(gain * truth[document] + rng.normal()))[:10] for truth in truths]
        for gain in [0.0, 0.1, gap]
    ]
    return rankings, truths


def grades_in_pool(pool: Pool, truths: list) -> list:
    return [{document: truth[document] for document in ids} for ids, truth in zip(pool.documents, truths, strict=True)]
