"""The probability of a verdict, calibrated, and when it settles a round.

The share of the fillings that end in a verdict differs from its probability: the model of relevance is fitted to few
grades and does not know its own faults. `calibrate` maps the share to how often such verdicts were those of all grades,
on complete collections.

A round is settled from `find_threshold` on and stays so down to LEAVE, so that it does not flicker. It can become
settled only when the number of grades passes a step of 5 %: fewer looks are fewer chances of a false one. Both depend
on nothing but the grades and the state before, which is stored: any process comes to the same answer.

A round stops at the first state that is likely enough, which favours states that are too sure. With a language model
that agrees with people they are rarer, so that its rounds are as often right from a lower probability on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchbench.ir.judging.state import State

ENTER, ENTER_WITH_MODEL, LEAVE = 0.965, 0.95, 0.5
FEWEST_SHARED, LEAST_KAPPA = 30, 0.4  # a model that people agree with
STEP = 1.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic map of a collection, from the log odds of the share to those of the verdict."""

    weight: float
    constant: float
    slope: float

    def map_odds(self, odds: float) -> float:
        return 1 / (1 + math.exp(-self.constant - self.slope * math.log(odds)))


# Learnt from complete collections: `perf/certainty.py` computes these figures from ADI, Cranfield and SciFact.
CALIBRATIONS = (
    Calibration(35, 0.49, 1.62),
    Calibration(225, -0.11, 1.06),
    Calibration(300, 0.38, 1.09),
)


def calibrate(share: float, draws: int) -> float:
    """Return the probability of a verdict in which this share of the draws ends.

    It is the mean over the collections, weighted by their numbers of queries: the next may be like any of them.
    """
    odds = (share * draws + 1) / ((1 - share) * draws + 1)
    total = sum(calibration.weight * calibration.map_odds(odds) for calibration in CALIBRATIONS)
    return total / sum(calibration.weight for calibration in CALIBRATIONS)


def find_threshold(shared: int, kappa: float | None) -> float:
    """Return the probability that settles a round: people and a model graded `shared` pairs, with Cohen's `kappa`."""
    agrees = kappa is not None and shared >= FEWEST_SHARED and kappa >= LEAST_KAPPA
    return ENTER_WITH_MODEL if agrees else ENTER


def is_due(judged: int, before: State | None) -> bool:
    """Return whether a round with these grades may become settled: at its first state, or a step after that before."""
    return before is None or _count_steps(judged) != _count_steps(before.judged)


def _count_steps(judged: int) -> int:
    return int(math.log(max(judged, 1)) / math.log(STEP))
