"""How many grades settle a round, counted where all grades are known, and the time of a state after one more grade.

Real collections with their grades hidden: benchmarks of 100 queries, of 2 runs and of 5, drawn from Cranfield, SciFact
and ADI (what is not listed there counts as judged not relevant). A round asks for grades, ten or a tenth more at a
time, until it says "settled": by depth and in the decisive order as ranks alone have them, and in the decisive order
with one kind of evidence more after the other. The prior is learnt from the other two collections; the one that is
committed knows all three. A simulated language model copies a person's grade with the probability kappa, else it draws
one as often as they are given; it is evidence from 30 graded pairs of a uniform sample on, which are asked for first
and are counted.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place); without them it says so and
does the rest.
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from prior import CUTOFF, DATA, NAMES, Collection, axes_in, drawn, prior_of, read

from benchbench.ir.judging import orders
from benchbench.ir.judging.calibration import MIN_PAIRS
from benchbench.ir.judging.evidence import AXES
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.relevance import Prior
from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import find_verdict

MEASURE = Measure("nDCG", CUTOFF)
SEEDS, TIMED = 35, 200
GROWTH, FIRST = 1.1, 10  # a state is asked for after so many more grades
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
    Way("decisive, ranks alone", texts=False, taught=False),
    Way("and the prior", texts=False),
    Way("and texts"),
    Way("and a model of kappa .3", kappa=0.3),
    Way("and a model of kappa .6", kappa=0.6),
)


@dataclass
class Played:
    """A simulated round: after how many grades it said settled, and whether another verdict came of all grades."""

    grades: int = 0
    wrong: bool = False
    forecasts: list[tuple[int, int]] = field(default_factory=list)


def group_of(rankings: list, truths: list, seed: int) -> tuple[int, ...]:
    """The verdict as pages have it: an unjudged document is not relevant."""
    values = [evaluate([MEASURE], GradedRankings.from_rankings(run, truths))[0] for run in rankings]
    return tuple(sorted(find_verdict(compare(np.stack(values), seed=seed)).group))


def copied(grades: np.ndarray, kappa: float, seed: int) -> np.ndarray:
    """The grades of a simulated model: Cohen's kappa with `grades` is expected to be `kappa`."""
    rng = np.random.default_rng((5, seed))
    return np.where(rng.random(len(grades)) < kappa, grades, rng.permutation(grades))


def checkpoints(size: int, first: int) -> Iterator[int]:
    at = first
    while at < size:
        yield at
        at = max(at + FIRST, int(at * GROWTH))
    yield size


def played(collection: Collection, way: Way, prior: Prior, seed: int, *, runs: int) -> Played:
    """A round until it says settled."""
    rankings, truths = drawn(collection, seed, runs=runs)
    pool = Pool.from_rankings(rankings, depth=CUTOFF)
    hidden = [  # of the pool alone: what no run returned is judged in no order
        {one: truth.get(one, 0.0) for one in ids} for ids, truth in zip(pool.documents, truths, strict=True)
    ]
    grades = pool.get_grades(hidden)[tuple(pool.cells.T)]
    model = copied(grades, way.kappa, seed) if way.kappa else None
    axes = axes_in(collection, pool) if way.texts else None
    unknown = [{} for _ in hidden]
    judging = Judging(pool, MEASURE, collection.scale, unknown, seed=seed, axes=axes, prior=prior)
    judging.inform(model)
    sample, given, result = orders.order_randomly(pool, seed=seed), set(), Played()
    calibrating = sample[: MIN_PAIRS if way.kappa else 0]
    for target in checkpoints(pool.size, MIN_PAIRS if way.kappa else FIRST):
        weighed = way.order == "decisive" and len(given) >= len(calibrating)
        rest = orders.order_by_weight(judging.compute_weights()) if weighed else orders.order_by_depth(pool)
        coming = orders.upcoming(np.concatenate([calibrating, rest]), sample, given)
        for _ in range(target - len(given)):
            number = next(coming)[0]
            given.add(number)
            judging.grade(pool.get_item(number), grades[number])
        state = judging.state(bounds=False)
        if state.is_settled:
            break
        if state.grades_needed.median is not None:
            result.forecasts.append((target, target + state.grades_needed.median))
    result.grades, result.wrong = len(given), state.verdict != group_of(rankings, hidden, seed)
    return result


def few_grades(seeds: int, ways: Sequence[Way]) -> None:
    """How many grades settle a round, by way; a line as soon as it is known."""
    missing = [name for name in NAMES if not (DATA / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not in {DATA.name}: no round is played. BENCHBENCH_SHARED_DATA names the folder.")
        return
    collections = {name: read(name) for name in NAMES}
    priors = {name: prior_of([one for one in collections.values() if one.name != name]) for name in NAMES}
    shares: dict[str, list[float]] = {}
    wrong: dict[str, int] = {}
    for name, collection in collections.items():
        for runs in (2, 5):
            by_depth = 0.0
            for way in ways:
                prior = priors[name] if way.taught else UNTAUGHT
                rounds = [played(collection, way, prior, seed, runs=runs) for seed in range(seeds)]
                grades = statistics.mean(one.grades for one in rounds)
                by_depth = by_depth or grades
                shares.setdefault(way.name, []).append(grades / by_depth)
                wrong[way.name] = wrong.get(way.name, 0) + sum(one.wrong for one in rounds)
                ratios = [
                    (said - at) / (one.grades - at) for one in rounds for at, said in one.forecasts if at < one.grades
                ]
                print(
                    f"{name}, {runs} runs, {way.name}: settled after {grades:,.0f} grades, {grades / by_depth:.0%} of "
                    f"those by depth, wrong {sum(one.wrong for one in rounds)} of {seeds}; foretold over needed, "
                    f"median {np.median(ratios or [np.nan]):.1f}",
                    flush=True,
                )
    for way in ways:
        print(
            f"{way.name}: {statistics.mean(shares[way.name]):.0%} of the grades by depth, mean of "
            f"{len(shares[way.name])} rows; wrong {wrong[way.name]} of {len(shares[way.name]) * seeds}"
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
        started = time.perf_counter()
        judging = Judging(pool, MEASURE, [0, 1, 2, 3], [{} for _ in range(300)], axes=evidence[0])
        judging.inform(evidence[1])
        first = orders.order_by_depth(pool).tolist()
        for number in first[:1_500]:
            judging.grade(pool.get_item(number), float(base[pool.get_item(number)] > 1.5))
        judging.state()
        opened = time.perf_counter() - started
        seconds = []
        for number in first[1_500 : 1_500 + TIMED]:
            judging.grade(pool.get_item(number), float(base[pool.get_item(number)] > 1.5))
            started = time.perf_counter()
            judging.state()
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
    asked = parser.parse_args()
    speed()
    few_grades(asked.seeds, [way for way in WAYS if way is WAYS[0] or asked.ways in way.name])


if __name__ == "__main__":
    main()
