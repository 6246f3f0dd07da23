"""Outcomes of gates on benchmarks of which the true loss is known; perf/gates.py uses them too."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from benchbench.ir.gate import Difference, Outcome, judge_loss
from benchbench.ir.measures import Measure
from benchbench.ir.rules import Change
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import find_detectable
from benchbench.ir.statistics.wording import FEWEST_CHANGED
from tests.ir.simulated import DENSITY, GRID, LUCK, MEDIAN, SPREAD, gain

Gain = Callable[[np.ndarray], np.ndarray]
QUERIES, LOSS, LIMIT = 30, 0.05, 0.01


def reciprocal(log_rank: np.ndarray) -> np.ndarray:
    return 1 / np.floor(np.exp(np.clip(log_rank, 0, 9)))


def first(log_rank: np.ndarray) -> np.ndarray:
    return (log_rank < np.log(2)).astype(float)


GAINS: dict[str, Gain] = {"nDCG": gain, "RR": reciprocal, "Success": first}


def find_ability(gain: Gain, loss: float) -> float:
    """Return the ability whose true mean is lower by a loss than that of ability 0."""
    abilities = np.linspace(-1, 0, 201)
    means = [float(gain(MEDIAN + np.hypot(SPREAD, LUCK) * GRID - ability) @ DENSITY) for ability in abilities]
    return float(np.interp(means[-1] - loss, means, abilities))


def judge_losses(gain: Gain, true_loss: float, *, lenient: bool, runs: int) -> Counter[Outcome]:
    """Return how many of `runs` gates of QUERIES queries had each outcome."""
    rng, abilities = np.random.default_rng(11), np.array([find_ability(gain, true_loss), 0.0])
    outcomes: Counter[Outcome] = Counter()
    for seed in range(runs):
        log_ranks = rng.normal(MEDIAN, SPREAD, QUERIES) + rng.normal(0, LUCK, (2, QUERIES)) - abilities[:, None]
        outcomes[_judge(gain(log_ranks), seed, lenient=lenient)] += 1
    return outcomes


def judge_few_losses(queries: int, size: float, *, runs: int) -> dict[bool, Counter[Outcome]]:
    """Return the outcomes of `runs` gates whose true loss is just above LIMIT, by whether 1 to 9 queries changed.

    A query loses `size` with the probability that makes the mean loss, else nothing.
    """
    rng = np.random.default_rng(12)
    outcomes: dict[bool, Counter[Outcome]] = {True: Counter(), False: Counter()}
    for seed in range(runs):
        losing = rng.random(queries) < 1.01 * LIMIT / size
        values = np.stack([1 - size * losing, np.ones(queries)])
        outcomes[0 < losing.sum() < FEWEST_CHANGED][_judge(values, seed, lenient=False)] += 1
    return outcomes


def _judge(values: np.ndarray, seed: int, *, lenient: bool) -> Outcome:
    rule = Change(Measure("nDCG", 10), may_lose=LIMIT, unless_significant=lenient)
    comparison = compare(values, baseline=1, seed=seed, resamples=1000)
    pair = comparison.get_pair(0, 1)
    interval = pair.simultaneous and (pair.simultaneous.low, pair.simultaneous.high)
    detectable = find_detectable(pair, comparison) if pair.standard_error else None
    result = Difference(pair.difference, interval, pair.significant, comparison.n, detectable)
    return judge_loss(rule, result)[0] if interval else Outcome.UNDECIDED
