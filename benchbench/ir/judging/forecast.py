"""Forecast of a round: how many more grades its verdict needs.

Each drawn filling is taken for the truth in turn. Judging the m weightiest holes takes the share ρ(m) of the variance
that holes leave in a difference (the sum of effect² · spread² of these holes over that of all), and what is then
expected has moved the share ρ(m) of the way from now to that truth. The pair is settled once what is expected is
further from both bars of significance than z spreads of what is left. The forecast is the median of m over the truths:
it allows for differences that grow as they become known, and for those that shrink. Normal, as in the stopping rule of
Carterette, Allan and Sitaraman (SIGIR 2006).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.outcomes import Outcomes
from benchbench.ir.judging.state import MoreGrades
from benchbench.ir.measures import Values

STEPS = 48


def forecast(outcomes: Outcomes, deciding: NDArray[np.intp], gains: Values, *, confidence: float) -> MoreGrades:
    """The forecast from `outcomes` of the fillings, the rows of the pairs that decide the verdict, (d,), and `gains`
    (d, h): the variance that each hole takes from each of these pairs, the holes in the order of judging."""
    holes = gains.shape[1]
    if not holes or not len(deciding):
        return MoreGrades(middle=0, most=0)
    steps = np.unique(np.geomspace(1, holes, STEPS).astype(np.int64))
    total = gains.sum(axis=1, keepdims=True)
    taken = np.divide(
        np.cumsum(gains, axis=1)[:, steps - 1], total, out=np.ones((len(gains), len(steps))), where=total > 0
    )
    taken[:, -1] = 1.0
    truth = outcomes.differences[:, deciding]
    now, spread = truth.mean(axis=0), truth.std(axis=0)
    bar = outcomes.critical * outcomes.errors[:, deciding].mean(axis=0)
    shares = np.maximum((truth > bar).mean(axis=0), (truth < -bar).mean(axis=0))
    shares = np.maximum(shares, (np.abs(truth) <= bar).mean(axis=0))
    z = NormalDist().inv_cdf(1 - (1 - confidence) / max(1, int((shares < 0.99).sum())))
    expected = now + taken.T[:, None] * (truth - now)  # (steps, draws, d)
    distance = np.minimum(np.abs(expected - bar), np.abs(expected + bar))
    settled = (distance >= z * spread * np.sqrt(np.maximum(1 - taken.T, 0.0))[:, None]).all(axis=2)
    settled[-1] = True
    needed = steps[settled.argmax(axis=0)]
    middle, most = np.quantile(needed, [0.5, 0.9])
    return MoreGrades(middle=_rounded(middle), most=_rounded(most))


def _rounded(number: float) -> int:
    """To two digits: more would say what is not known."""
    unit: float = 10 ** max(0, int(np.log10(max(number, 1))) - 1)
    return int(np.ceil(number / unit) * unit)
