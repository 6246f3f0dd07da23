"""The probability of a verdict, calibrated, and when it settles a round.

The share of the fillings that end in a verdict differs from its probability: the model of relevance is fitted to few
grades and does not know its own faults. `calibrate` maps the share to how often such verdicts were those of all grades,
on complete collections.

A round is settled from ENTER on and stays so down to LEAVE, so that it does not flicker. It can become settled only
when the number of grades passes a step of 5 %: fewer looks are fewer chances of a false one. Both depend on nothing but
the grades and the state before, which is stored: any process comes to the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from benchbench.ir.judging.state import State

ENTER, LEAVE = 0.97, 0.5
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
    Calibration(35, 0.82, 3.00),
    Calibration(225, -0.05, 1.60),
    Calibration(300, -0.20, 1.39),
)


def calibrate(share: float, draws: int) -> float:
    """Return the probability of a verdict in which this share of the draws ends.

    It is the mean over the collections, weighted by their numbers of queries: the next may be like any of them.
    """
    odds = (share * draws + 1) / ((1 - share) * draws + 1)
    total = sum(calibration.weight * calibration.map_odds(odds) for calibration in CALIBRATIONS)
    return total / sum(calibration.weight for calibration in CALIBRATIONS)


def is_due(judged: int, before: State | None) -> bool:
    """Return whether a round with these grades may become settled: at its first state, or a step after that before."""
    return before is None or _count_steps(judged) != _count_steps(before.judged)


def _count_steps(judged: int) -> int:
    return int(math.log(max(judged, 1)) / math.log(STEP))
