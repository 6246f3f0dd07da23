"""What the tests of significance promise, counted on simulated benchmarks of which the truth is known, and their time.

2,000 benchmarks of 16 runs × 100 queries, see tests/ir/simulated.py. First none of the runs is better, and every
benchmark with a significant pair is an error. Then one run is better than the other 15 by a known amount, and the rate
at which that is found is held against the smallest detectable difference that the comparisons state.
"""
# mypy: no-strict-optional

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchbench.ir.statistics.significance import Comparison, compare
from benchbench.ir.statistics.verdict import find_verdict
from tests.ir.simulated import QUERIES, RUNS, benchmark, skewed, true_mean

BENCHMARKS, POWERED, RESAMPLES, ROUNDS = 2_000, 500, 1_000, 5
ABILITIES = (0.5, 0.65, 0.8, 0.95)


def compared(
    make: Callable[[np.random.Generator], np.ndarray], benchmarks: int, baseline: int | None = None
) -> list[Comparison]:
    return [
        compare(make(np.random.default_rng((7, seed))), seed=seed, baseline=baseline, resamples=RESAMPLES)
        for seed in range(benchmarks)
    ]


def rate(hits: list[bool]) -> str:
    share = statistics.fmean(hits)
    return f"{share:.2%} ± {(share * (1 - share) / len(hits)) ** 0.5:.2%}"


def equal(rng: np.random.Generator) -> np.ndarray:
    return benchmark(rng, [0] * RUNS)


def errors() -> None:
    print("no run is better: benchmarks with an error ± its standard error, and with a winner named")
    for name, make in (("equal runs", equal), ("skewed differences", skewed)):
        for family, baseline in (("all pairs", None), ("against a baseline", 0)):
            found = compared(make, BENCHMARKS, baseline)
            wrong = [any(pair.significant for pair in one.pairs) for one in found]
            plain = [any(pair.p_t <= one.alpha for pair in one.pairs) for one in found]
            won = [find_verdict(one).winner is not None for one in found]
            print(f"  {name}, {family}: {rate(wrong)}, winner {rate(won)}; without correction {rate(plain)}")


def power() -> None:
    print(f"run 0 is better by a known amount, {POWERED} benchmarks: how often its 15 pairs are found among all pairs")
    found, differences, stated = [], [], []
    for ability in ABILITIES:
        comparisons = compared(partial(benchmark, abilities=[ability] + [0] * (RUNS - 1)), POWERED)
        pairs = [pair for one in comparisons for pair in one.pairs if pair.first == 0]
        differences.append(true_mean(ability) - true_mean(0))
        found.append(statistics.fmean(pair.significant for pair in pairs))
        stated.append(statistics.fmean(pair.detectable for pair in pairs))
        covered = statistics.fmean(pair.simultaneous.low <= differences[-1] <= pair.simultaneous.high for pair in pairs)
        plain = statistics.fmean(pair.interval.low <= differences[-1] <= pair.interval.high for pair in pairs)
        print(
            f"  by {differences[-1]:.4f}: found {found[-1]:.1%}, stated detectable {stated[-1]:.4f}; "
            f"bootstrap intervals that hold it {plain:.1%}, simultaneous {covered:.1%}"
        )
    true = float(np.interp(0.8, found, differences))
    claimed = float(np.interp(0.8, found, stated))
    print(f"  found with 80 %: {true:.4f}; stated there: {claimed:.4f}, ratio {claimed / true:.3f}")


def speed() -> None:
    values = benchmark(np.random.default_rng(1), [0] * RUNS, 1_000)
    seconds = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        comparison = compare(values, seed=1, resamples=10_000)
        seconds.append(time.perf_counter() - started)
    median, fastest, slowest = statistics.median(seconds[1:]), min(seconds[1:]), max(seconds[1:])
    print(
        f"{len(comparison.pairs)} pairs x 10,000 flips and draws x 1,000 queries: "
        f"{median:.3f} s ({fastest:.3f} to {slowest:.3f})"
    )


def main() -> None:
    speed()
    print(f"{BENCHMARKS:,} benchmarks of {RUNS} runs x {QUERIES} queries, {RESAMPLES:,} resamples")
    errors()
    power()


if __name__ == "__main__":
    main()
