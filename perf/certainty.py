"""Makes the calibration of a verdict's probability (`benchbench/ir/judging/certainty.py`) from complete collections.

Rounds with their grades hidden, as in `judging.py`, with other seeds: of alike runs and of unlike ones, without a model
and with one of kappa .6. Of every state it is known which share of its fillings ends in its verdict, and whether this
is the verdict of all grades. For each collection a logistic regression maps the share's log odds; a round weighs as the
root of its number of states. The probability is the mean of the collections' maps, weighted by their numbers of
queries: the next collection may be like any of them.

Rounds are appended to a file as they are played, and those that it has are not played again.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place). Set OPENBLAS_NUM_THREADS=1:
the threads of small products wait for each other.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
from judging import BINS, UNTAUGHT, WAYS, Way, group_of, in_pool, moments, share, values_of
from prior import DATA, NAMES, Collection, drawn, prior_of, read
from sklearn.linear_model import LogisticRegression

from benchbench.ir.judging import certainty, judging
from benchbench.ir.judging.certainty import Calibration, calibrate
from benchbench.ir.judging.judging import DRAWS
from benchbench.ir.judging.relevance import Prior

FROM, SEEDS = 1000, 12  # seeds below are for tests
BASE, PLAIN, INFORMED = WAYS[0], WAYS[3], WAYS[5]
ALIKE, UNLIKE = ((2, False), (5, False)), ((2, True), (3, True), (4, True))
LEARNT = [(way, *kind) for way in (PLAIN, INFORMED) for kind in (*ALIKE, *UNLIKE)]
TESTED = [(way, *kind) for way in (BASE, PLAIN, INFORMED) for kind in ALIKE]
SURE, FEWEST = 0.985, 110  # a round ends at a share above this, of so many grades or more
LEAST = 0.3  # a share below decides nothing
ENTERS = 0.9, 0.925, 0.95, 0.965, 0.98


@dataclass(frozen=True)
class Round:
    collection: str
    way: str
    seed: int
    runs: int
    unlike: bool
    states: list[tuple[int, float, bool, bool]]
    """Of each state with grades enough: their number, the share of its fillings (1: there is no other filling), whether
    one run won, and whether the verdict was right."""

    @property
    def key(self) -> tuple[str, str, int, int, bool]:
        return self.collection, self.way, self.seed, self.runs, self.unlike


def play_round(collection: Collection, way: Way, prior: Prior, seed: int, runs: int, unlike: bool) -> Round:
    """Play a round until it is sure, with the share itself for the probability."""
    rankings, truths = drawn(collection, seed, runs=runs, unlike=unlike)
    hidden = in_pool(rankings, truths)
    group, states = group_of(values_of(rankings, hidden), seed), []
    for moment in moments(rankings, hidden, way, prior, collection, seed):
        state = moment.state
        if state.reason is None:
            right = state.verdict == group
            states.append((state.judged, round(state.probability, 6), state.winner is not None, right))
        if state.probability > SURE and state.judged >= FEWEST:
            break
    return Round(collection.name, way.name, seed, runs, unlike, states)


def play_rounds(file: Path, seeds: range, kinds: Sequence[tuple[Way, int, bool]]) -> None:
    """Append the rounds that the file does not have, seed by seed; a collection's prior is from the others."""
    collections = [read(name) for name in NAMES]
    priors = {one.name: prior_of([other for other in collections if other is not one]) for one in collections}
    seen = {one.key for one in read_rounds(file)} if file.exists() else set()
    plain = Calibration(1, 0.0, 1.0)  # the share itself; and no state keeps an earlier verdict
    with (
        patch.object(certainty, "CALIBRATIONS", [plain]),
        patch.object(judging, "find_threshold", lambda *_: 2.0),
        file.open("a") as lines,
    ):
        for seed, collection, (way, runs, unlike) in product(seeds, collections, kinds):
            if (collection.name, way.name, seed, runs, unlike) not in seen:
                prior = priors[collection.name] if way.taught else UNTAUGHT
                one = play_round(collection, way, prior, seed, runs, unlike)
                print(json.dumps(asdict(one)), file=lines, flush=True)


def read_rounds(file: Path) -> list[Round]:
    return [Round(**json.loads(line)) for line in file.open()]


def fit(rounds: Sequence[Round]) -> Calibration:
    """Fit the map of a collection to its rounds."""
    weighted = [(state, len(one.states) ** -0.5) for one in rounds for state in one.states]
    states = [(part, right, weight) for (_, part, _, right), weight in weighted if LEAST < part < 1]
    shares, right, weights = (np.array(column, float) for column in zip(*states, strict=True))
    odds = np.log(shares / (1 - shares))[:, None]
    model = LogisticRegression(C=3, max_iter=1000).fit(odds, right, weights / weights.mean())
    constant, slope = (round(float(one), 2) for one in (model.intercept_[0], model.coef_[0, 0]))
    return Calibration(len(read(rounds[0].collection).truths), constant, slope)


def settle(one: Round, enter: float) -> tuple[int, bool]:
    """Return how many grades settle a round, and whether rightly; what is not settled ends where its record does."""
    states = (state for state in one.states if compute_probability(state[1]) >= enter)
    judged, _, _, right = next(states, one.states[-1])
    return judged, right


def compute_probability(share: float) -> float:
    """Return the probability that the product gives a state."""
    return 1.0 if share == 1 else calibrate(share + (2 * share - 1) / DRAWS, DRAWS)


def describe(rounds: Sequence[Round]) -> None:
    """Print how many grades settle rounds, and how often wrongly, by the probability that does; and what that means."""
    for enter, way in product(ENTERS, (BASE, PLAIN, INFORMED)):
        if some := [one for one in rounds if one.way == way.name]:
            wrong, ratios = [not settle(one, enter)[1] for one in some], []
            for row in product(NAMES, {one.runs for one in some}):
                grades = [
                    [settle(one, enter)[0] for one in rounds if (one.collection, one.runs, one.way) == (*row, of)]
                    for of in (way.name, BASE.name)
                ]
                ratios += [np.mean(grades[0]) / np.mean(grades[1])] if all(grades) else []
            by_depth = f"{np.mean(ratios):.0%} of the grades by depth" if ratios else ""
            print(f"{enter:.3f}, {way.name}: wrong {share(wrong)}; {by_depth}")
    states = [state for one in rounds if one.way != BASE.name for state in one.states]
    for won, (low, high) in product((True, False), BINS):
        if flags := [right for _, part, one, right in states if one == won and low <= compute_probability(part) < high]:
            print(f"{'one winner' if won else 'several'}, {low:.2f} to {high:.2f}: right in {share(flags)} of states")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=Path, default=Path(tempfile.gettempdir()) / "benchbench-rounds.jsonl")
    parser.add_argument("--first", type=int, default=FROM, help="the first seed; those below 1,000 are for tests")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    missing = [name for name in NAMES if not (DATA / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not in {DATA.name}: nothing is learnt. BENCHBENCH_SHARED_DATA names the folder.")
        return
    seeds = range(asked.first, asked.first + asked.seeds)
    play_rounds(asked.rounds, seeds, LEARNT if asked.first >= FROM else TESTED)
    rounds = [one for one in read_rounds(asked.rounds) if one.seed in seeds]
    for name in NAMES:
        print(name, fit([one for one in rounds if one.collection == name and one.way != BASE.name]))
    describe(rounds)


if __name__ == "__main__":
    main()
