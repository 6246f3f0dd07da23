"""What a model's grades are worth, corrected by some of a person's, counted where all grades are known.

Corrected verdicts on 1,000 benchmarks drawn from a population whose means are known, with a judge of kappa .3 and of
.6: how often intervals hold the truth, a winner is false, and the better run is found.
"""

import argparse
import statistics
from dataclasses import dataclass, field

import numpy as np

from benchbench.ir.judging.corrected import CorrectedComparison, correct_by_queries
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import find_verdict

CORRECTED, JUDGED, DOCUMENTS, HELD = 300, 60, 20, 1_000  # queries, of which judged by a person; documents of each
GRADES = np.array([0.6, 0.2, 0.12, 0.08])  # how many documents have grade 0, 1, 2, 3


@dataclass(frozen=True)
class Population:
    """Queries with 20 documents each, which 4 runs rank by grade and luck, the last by grade more than the others.

    The judge copies a person's grade with the probability `kappa`; otherwise it draws one as often as persons give it,
    so that Cohen's kappa is that probability, and of what the first run ranks first it draws the better of two.
    """

    kappa: float
    gain: float
    runs: int = 4

    def draw(self, rng: np.random.Generator, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Grades by a person and by the judge (q, 20), and rankings (runs, q, 20)."""
        person = rng.choice(4, (queries, DOCUMENTS), p=GRADES).astype(float)
        ability = np.full(self.runs, 0.5) + self.gain * (np.arange(self.runs) == self.runs - 1)
        scores = ability[:, None, None] * person + rng.normal(0, 1, (self.runs, queries, DOCUMENTS))
        rankings = np.argsort(-scores, axis=2)
        luck = rng.choice(4, (2, queries, DOCUMENTS), p=GRADES)
        top = np.argsort(rankings[0], axis=1) < 5
        drawn_grade = np.where(top, luck.max(axis=0), luck[0])
        return person, np.where(rng.random(person.shape) < self.kappa, person, drawn_grade), rankings


def ndcg(grades: np.ndarray, rankings: np.ndarray) -> np.ndarray:
    """Return nDCG@10, (runs, q)."""
    discounts = 1 / np.log2(np.arange(2, 12))
    best_of = -np.sort(-grades, axis=1)[:, :10] @ discounts
    gained = np.take_along_axis(np.broadcast_to(grades, rankings.shape), rankings, axis=2)[:, :, :10] @ discounts
    return np.divide(gained, best_of, out=np.zeros_like(gained), where=best_of > 0)


def by_queries(population: Population, rng: np.random.Generator, seed: int) -> tuple[CorrectedComparison, bool]:
    person, model, rankings = population.draw(rng, CORRECTED)
    values = ndcg(model, rankings)
    judged = np.where(np.arange(CORRECTED) < JUDGED, ndcg(person, rankings), np.nan)
    plain = find_verdict(compare(values, seed=seed, resamples=HELD))
    return correct_by_queries(values, judged, seed=seed, resamples=HELD), plain.winner is not None


@dataclass
class Counted:
    """What happened on the benchmarks of one kind."""

    held: list[bool] = field(default_factory=list)
    all_held: list[bool] = field(default_factory=list)
    found: list[bool] = field(default_factory=list)
    false: list[bool] = field(default_factory=list)
    false_plain: list[bool] = field(default_factory=list)
    tuned: list[float] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)

    def add(self, told: CorrectedComparison, means: np.ndarray) -> None:
        true = [means[pair.first] - means[pair.second] for pair in told.pairs]
        pairs = list(zip(told.pairs, true, strict=True))
        self.held += [pair.interval.low <= at <= pair.interval.high for pair, at in pairs]
        self.all_held.append(all(pair.simultaneous.low <= at <= pair.simultaneous.high for pair, at in pairs))
        self.found.append(told.group == (len(means) - 1,))
        self.tuned.append(statistics.fmean(pair.tuned for pair in told.pairs))
        self.gains.append(told.gain)


def rate(hits: list[bool]) -> str:
    share = statistics.fmean(hits)
    return f"{share:.1%} ± {(share * (1 - share) / len(hits)) ** 0.5:.1%}"


def corrected(benchmarks: int) -> None:
    """Coverage on benchmarks with a better run, and false winners on those without."""
    print(f"corrected verdicts: {benchmarks:,} benchmarks of 4 runs x {CORRECTED} queries, nDCG@10")
    for kappa in (0.3, 0.6):
        better, equal = Population(kappa, 0.1), Population(kappa, 0.0)
        person, _, rankings = better.draw(np.random.default_rng(1), 50_000)
        means = ndcg(person, rankings).mean(axis=1)
        counted = Counted()
        for seed in range(benchmarks):
            counted.add(by_queries(better, np.random.default_rng((3, seed)), seed)[0], means)
            told, plain = by_queries(equal, np.random.default_rng((4, seed)), seed)
            counted.false.append(len(told.group) == 1)
            counted.false_plain.append(plain)
        print(
            f"  kappa {kappa} ({told.judged} queries judged): intervals hold the truth {rate(counted.held)}, all "
            f"of a family {rate(counted.all_held)}; false winners {rate(counted.false)}, by the judge alone "
            f"{rate(counted.false_plain)}; the better run found {rate(counted.found)}; "
            f"lambda {statistics.fmean(counted.tuned):.2f}, gained {statistics.median(counted.gains):.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=int, default=1_000, help="how many are simulated of each kind")
    corrected(parser.parse_args().benchmarks)


if __name__ == "__main__":
    main()
