"""Makes the calibration of a verdict's probability (`benchbench/ir/judging/certainty.py`) from complete collections.

Rounds with their grades hidden, as in `judging.py`, with other seeds: of alike runs and of unlike ones, without a model
and with one of kappa .6. Of every state it is known which share of its fillings ends in its verdict, and whether this
is the verdict of all grades. For each collection a logistic regression maps the share's log odds, for several best runs
and for one winner. A round weighs as the root of its number of states. The probability is the mean of the collections'
maps, weighted by their numbers of queries: the next collection may be like any of them.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place).
"""

import argparse
from dataclasses import dataclass, field

import numpy as np
from judging import Way, group_of, in_pool, moments, values_of
from prior import DATA, NAMES, Collection, drawn, prior_of, read
from sklearn.linear_model import LogisticRegression

from benchbench.ir.judging import certainty, judging
from benchbench.ir.judging.certainty import Calibration
from benchbench.ir.judging.relevance import Prior

FROM, SEEDS = 1000, 32
WAYS = Way("decisive, the prior and texts"), Way("and a model of kappa .6", kappa=0.6)
SURE, IN_TURN = 0.995, 3  # a round ends after so many states in turn that are sure
LEAST = 0.3  # a share below decides nothing


@dataclass
class Seen:
    """States of rounds: the log odds of the share, whether one run won, whether it was right, and their weights."""

    odds: list[float] = field(default_factory=list)
    one: list[bool] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add_round(self, collection: Collection, way: Way, prior: Prior, seed: int, *, runs: int, unlike: bool) -> None:
        rankings, truths = drawn(collection, seed, runs=runs, unlike=unlike)
        hidden = in_pool(rankings, truths)
        group, sure, before = group_of(values_of(rankings, hidden), seed), 0, len(self.odds)
        for moment in moments(rankings, hidden, way, prior, collection, seed):
            state = moment.state
            sure = sure + 1 if state.probability >= SURE and state.judged >= 110 else 0
            if state.reason is None and LEAST < state.probability < 1:
                self.odds.append(np.log(state.probability / (1 - state.probability)))
                self.one.append(state.winner is not None)
                self.right.append(state.verdict == group)
            if sure == IN_TURN:
                break
        states = len(self.odds) - before
        self.weights += [max(states, 1) ** -0.5] * states

    def fit(self, queries: int) -> Calibration:
        odds, one, weights = np.array(self.odds), np.array(self.one, float), np.array(self.weights)
        columns = np.stack([odds, one, odds * one], axis=1)
        model = LogisticRegression(C=3, max_iter=1000).fit(columns, self.right, weights / weights.mean())
        (constant,), (slope, constant_of_one, slope_of_one) = model.intercept_, model.coef_[0]
        several, winner = (constant, slope), (constant + constant_of_one, slope + slope_of_one)
        return Calibration(queries, *(tuple(round(float(one), 2) for one in part) for part in (several, winner)))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    missing = [name for name in NAMES if not (DATA / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not in {DATA.name}: nothing is learnt. BENCHBENCH_SHARED_DATA names the folder.")
        return
    certainty.CALIBRATIONS = (Calibration(1, (0.0, 1.0), (0.0, 1.0)),)  # the share itself
    judging.ENTER = 2.0  # no state keeps an earlier verdict
    collections = {name: read(name) for name in NAMES}
    for name, collection in collections.items():
        prior, seen = prior_of([one for one in collections.values() if one.name != name]), Seen()
        for way in WAYS:
            for seed in range(FROM, FROM + SEEDS):
                for runs, unlike in ((2, False), (5, False), (2, True), (3, True), (4, True)):
                    seen.add_round(collection, way, prior, seed, runs=runs, unlike=unlike)
        print(name, seen.fit(len(collection.truths)), flush=True)


if __name__ == "__main__":
    main()
