"""How many grades settle a round, counted where all grades are known, and the time of a state after one more grade.

Real collections with their grades hidden: benchmarks of 100 queries, of 2 runs and of 5, drawn from Cranfield, SciFact
and ADI (what is not listed there counts as judged not relevant). A round asks for grades, a step of 5 % at a time,
until it says "settled": by depth and in the decisive order, by ranks alone and with more evidence. The prior is learnt
from the other two collections; the one that is committed knows all three. A simulated language model copies a person's
grade with the probability kappa, else it draws one as often as they are given.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place); without them it says so and
does the rest.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from typing import Any

import numpy as np
from prior import CUTOFF, DATA, NAMES, Collection, axes_in, drawn, prior_of, read
from scipy.stats import binomtest

from benchbench.ir.judging import orders
from benchbench.ir.judging.certainty import is_due
from benchbench.ir.judging.evidence import AXES
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.relevance import Prior
from benchbench.ir.judging.state import State
from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.statistics.resampling import SAME
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import find_verdict

MEASURE = Measure("nDCG", CUTOFF)
SEEDS, TIMED = 50, 200
FIRST = 20  # grades before the first state
BINS = ((0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 0.98), (0.98, 1.01))
UNTAUGHT = Prior((-2.0, 0, 0, 0, 0, 0, 1.0), (2.0, 2.0, 1.0, 1.0, 1.0, 1e-6, 0.5), (0.0, 1.0), 1.0)  # of ranks alone


@dataclass(frozen=True)
class Way:
    """A way to run a round."""

    name: str
    order: str = "decisive"
    texts: bool = True
    kappa: float = 0.0
    """Of the simulated language model; 0 is none."""
    taught: bool = True
    """Whether complete collections teach the prior."""


WAYS = (
    Way("depth, ranks alone", order="depth", texts=False, taught=False),
    Way("depth, the prior and texts", order="depth"),
    Way("decisive, ranks alone", texts=False, taught=False),
    Way("decisive, the prior and texts"),
    Way("and a model of kappa .3", kappa=0.3),
    Way("and a model of kappa .6", kappa=0.6),
)


@dataclass
class Played:
    """A simulated round when it said settled, against what all grades say."""

    grades: int = 0
    wrong: bool = False
    """Whether the settled verdict is another."""
    plain_wrong: bool = False
    """Whether that of the plain means is another: what is not judged counts as not relevant."""
    runs: list[tuple[bool, float, float]] = field(default_factory=list)
    """Of each run: whether its mean lies in the interval; the errors of the expected and of the plain mean."""
    pairs: list[bool] = field(default_factory=list)
    """Of each pair: whether its difference lies in the interval."""
    said: list[tuple[float, bool]] = field(default_factory=list)
    """The probability of each state with grades enough, and whether its verdict was that of all grades."""
    forecasts: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Moment:
    """A round at a step of 5 %: its last state, and the grades so far."""

    pool: Pool
    state: State
    given: list[dict]


def values_of(rankings: list, truths: list) -> np.ndarray:
    """(R, Q), as pages have them: an unjudged document is not relevant."""
    return np.stack([evaluate([MEASURE], GradedRankings.from_rankings(run, truths))[0] for run in rankings])


def group_of(values: np.ndarray, seed: int) -> tuple[int, ...]:
    """The verdict as pages have it."""
    return tuple(sorted(find_verdict(compare(values, seed=seed)).group))


def copied(grades: np.ndarray, kappa: float, seed: int) -> np.ndarray:
    """The grades of a simulated model: Cohen's kappa with `grades` is expected to be `kappa`."""
    rng = np.random.default_rng((5, seed))
    return np.where(rng.random(len(grades)) < kappa, grades, rng.permutation(grades))


def moments(
    rankings: list, hidden: list, way: Way, prior: Prior, collection: Collection, seed: int
) -> Iterator[Moment]:
    """A round, step by step, until every pair is judged."""
    pool = Pool.from_rankings(rankings, depth=CUTOFF)
    grades = pool.get_grades(hidden)[tuple(pool.cells.T)]
    axes = axes_in(collection, pool) if way.texts else None
    given: list[dict] = [{} for _ in hidden]
    judging = Judging(pool, MEASURE, collection.scale, given, seed=seed, axes=axes, prior=prior)
    judging.inform(copied(grades, way.kappa, seed) if way.kappa else None)
    sample, state = orders.order_randomly(pool, seed=seed), None
    asked: set[int] = set()
    while len(asked) < pool.size:
        order = (
            orders.order_by_weight(judging.compute_weights())
            if way.order == "decisive"
            else orders.order_by_depth(pool)
        )
        coming = orders.upcoming(order, sample, asked)
        while len(asked) < FIRST or state is None or not is_due(len(asked), state):
            number = next(coming)
            asked.add(number)
            item = pool.get_item(number)
            given[item.query][item.document] = grades[number]
            judging.grade(item, grades[number])
            if len(asked) in (FIRST, pool.size):
                break
        state = judging.state(before=state, bounds=False)
        yield Moment(pool, state, given)


def in_pool(rankings: list, truths: list) -> list[dict]:
    """The grades of the pool alone: what no run returned is judged in no order."""
    documents = Pool.from_rankings(rankings, depth=CUTOFF).documents
    return [{one: truth.get(one, 0.0) for one in ids} for ids, truth in zip(documents, truths, strict=True)]


def played(collection: Collection, way: Way, prior: Prior, seed: int, *, runs: int, unlike: bool = False) -> Played:
    """A round until it says settled."""
    rankings, truths = drawn(collection, seed, runs=runs, unlike=unlike)
    hidden, result = in_pool(rankings, truths), Played()
    values = values_of(rankings, hidden)
    group, means = group_of(values, seed), values.mean(axis=1)
    for moment in moments(rankings, hidden, way, prior, collection, seed):
        state = moment.state
        if state.reason is None:
            result.said.append((state.probability, state.verdict == group))
        if state.is_settled:
            break
        if state.grades_needed.median is not None:
            result.forecasts.append((state.judged, state.judged + state.grades_needed.median))
    plain = values_of(rankings, moment.given)
    result.grades, result.wrong = state.judged, state.verdict != group
    result.plain_wrong = group_of(plain, seed) != group
    result.runs = [
        (run.low - SAME <= mean <= run.high + SAME, abs(run.mean - mean), abs(shown - mean))
        for run, mean, shown in zip(state.runs, means, plain.mean(axis=1), strict=True)
    ]
    result.pairs = [
        pair.low - SAME <= means[pair.first] - means[pair.second] <= pair.high + SAME for pair in state.pairs
    ]
    return result


def share(flags: Sequence[bool]) -> str:
    """A share with its Wilson interval."""
    test = binomtest(int(sum(flags)), len(flags)).proportion_ci(method="wilson")
    return f"{sum(flags)} of {len(flags)}, {np.mean(flags):.1%} ({test.low:.1%} to {test.high:.1%})"


def few_grades(seeds: range, ways: Sequence[Way]) -> None:
    """How many grades settle a round, by way; a process plays the rounds of a collection."""
    missing = [name for name in NAMES if not (DATA / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not in {DATA.name}: no round is played. BENCHBENCH_SHARED_DATA names the folder.")
        return
    base: list[list[Played]] = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        for way in ways:
            rows = [row for two in processes.map(play_rows, NAMES, repeat(way), repeat(seeds)) for row in two]
            base = base or rows
            print(described(way.name, rows, base), flush=True)


def play_rows(name: str, way: Way, seeds: range) -> list[list[Played]]:
    """Play the rounds of a collection, of 2 runs and of 5, with a prior from the others; a line for each row."""
    collection, prior = read(name), UNTAUGHT
    if way.taught:
        prior = prior_of([read(other) for other in NAMES if other != name])
    rows = []
    for runs in (2, 5):
        rows.append([played(collection, way, prior, seed, runs=runs) for seed in seeds])
        grades = statistics.mean(one.grades for one in rows[-1])
        wrong = sum(one.wrong for one in rows[-1])
        print(f"{name}, {runs} runs, {way.name}: {grades:,.0f} grades, wrong {wrong}", flush=True)
    return rows


def described(name: str, rows: Sequence[Sequence[Played]], base: Sequence[Sequence[Played]]) -> str:
    """What a way needs and gets wrong, and what a reader sees after closing."""
    ratios = [
        statistics.mean(one.grades for one in row) / statistics.mean(one.grades for one in by_depth)
        for row, by_depth in zip(rows, base, strict=True)
    ]
    every = [one for row in rows for one in row]
    inside, expected, plain = zip(*[run for one in every for run in one.runs], strict=True)
    bins = [[right for one in every for said, right in one.said if low <= said < high] for low, high in BINS]
    foretold = [(said - at) / (one.grades - at) for one in every for at, said in one.forecasts if at < one.grades]
    return "\n    ".join(
        [
            f"{name}: {statistics.mean(ratios):.0%} of the grades by depth, mean of {len(rows)} rows",
            f"settled verdict wrong: {share([one.wrong for one in every])}",
            f"verdict of the plain means wrong: {share([one.plain_wrong for one in every])}",
            f"means inside their intervals: {share(inside)}",
            f"mean error of the expected means {np.mean(expected):.3f}, of the plain {np.mean(plain):.3f}",
            f"differences inside their intervals: {share([inside for one in every for inside in one.pairs])}",
            f"foretold over needed, median {np.median(foretold or [np.nan]):.1f}",
            "probability and share of right verdicts: "
            + "; ".join(
                f"{low:.2f} to {high:.2f}: {share(flags)}"
                for (low, high), flags in zip(BINS, bins, strict=True)
                if flags
            ),
        ]
    )


def speed() -> None:
    """States after one more grade each, of 16 runs x 300 queries; and the first, when a process opens the round."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=(300, 400))
    scores = base + 0.5 * rng.normal(size=(16, 300, 400))
    pool = Pool.from_rankings(
        [[row.tolist() for row in run] for run in np.argsort(-scores, axis=2)[:, :, :100]], depth=10
    )
    axes = rng.normal(0, AXES**-0.5, (pool.size, AXES)).astype(np.float16)
    model = rng.integers(0, 4, pool.size).astype(float)
    for name, *evidence in (("ranks alone", None, None), ("texts and a model's grades", axes, model)):
        cells: list[Any] = [pool.get_item(number) for number in range(pool.size)]
        started = time.perf_counter()
        judging = Judging(pool, MEASURE, [0, 1, 2, 3], [{} for _ in range(300)], axes=evidence[0])
        judging.inform(evidence[1])
        first = orders.order_by_depth(pool).tolist()
        for number in first[:1_500]:
            judging.grade(pool.get_item(number), float(base[cells[number]] > 1.5))
        state = judging.state()
        opened = time.perf_counter() - started
        seconds = []
        for number in first[1_500 : 1_500 + TIMED]:
            judging.grade(pool.get_item(number), float(base[cells[number]] > 1.5))
            started = time.perf_counter()
            state = judging.state(before=state)
            seconds.append(time.perf_counter() - started)
        print(
            f"16 runs x 300 queries, {pool.size:,} pairs, {name}: a state after one more grade median "
            f"{statistics.median(seconds) * 1000:.1f} ms, mean of {TIMED} with the model learnt again "
            f"{statistics.mean(seconds) * 1000:.1f} ms; opened in {opened:.2f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="benchmarks drawn from each collection")
    parser.add_argument("--ways", default="", help="a part of the names of the ways to take; the first is always taken")
    parser.add_argument("--first", type=int, default=0, help="the first seed; perf/certainty.py takes those from 1,000")
    asked = parser.parse_args()
    speed()
    few_grades(
        range(asked.first, asked.first + asked.seeds), [way for way in WAYS if way is WAYS[0] or asked.ways in way.name]
    )


if __name__ == "__main__":
    main()
