"""What verdicts promise where differences are few, skewed, or yes and no, counted on real runs of which all is known.

The queries of SciFact and Cranfield stand for all queries there are; benchmarks draw from them with replacement. Alike
runs are ten settings of BM25, unlike ones seven different searches. "Before" is sign flips alone, with intervals of the
critical value times the standard error around the difference; "now" is what the product says.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place); without them it says so.
"""

import argparse
import csv
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from prior import DATA, best, fused, lexical, semantic
from scipy.special import stdtrit

from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.statistics.resampling import Interval
from benchbench.ir.statistics.significance import Comparison, Pair, compare
from benchbench.ir.statistics.verdict import check_non_inferiority

MEASURES = {
    "AP": Measure("AP", None),
    "nDCG": Measure("nDCG", 10),
    "RR": Measure("RR", None),
    "Success": Measure("Success", 1),
    "P": Measure("P", 10),
}
COLLECTIONS = {"scifact": ("train.tsv", "test.tsv"), "cranfield": ("test.tsv",)}
BENCHMARKS, RESAMPLES, FAMILY = 300, 999, 5
ALIKE = (
    (0.9, 0.4),
    (1.2, 0.75),
    (1.5, 0.75),
    (1.5, 0.4),
    (2, 0.75),
    (1.2, 0.3),
    (0.9, 0.75),
    (1.2, 0.9),
    (0.6, 0.5),
    (3, 0.6),
)
Population = np.ndarray  # (runs, queries)


def read(name: str) -> dict[str, dict[str, Population]]:
    """The values of all runs of a collection, by group and measure."""
    folder = DATA / name
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    judged: dict[str, dict[str, float]] = {}
    for file in COLLECTIONS[name]:
        for row in csv.DictReader((folder / "qrels" / file).open(), delimiter="\t"):
            judged.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    asked = [query for line in (folder / "queries.jsonl").open() if (query := json.loads(line))["_id"] in judged]
    queries, titles = [query["text"] for query in asked], [one["title"] or one["text"][:60] for one in documents]
    texts = [f"{one['title']} {one['text']}" for one in documents]
    usual, dense = lexical(texts, queries, k1=1.5, b=0.75, stem=True, stop=True), semantic(texts, queries, 200)
    plain: dict[str, Any] = {"k1": 1.5, "b": 0.75, "stop": True}
    groups = {
        "alike": [lexical(texts, queries, k1=k1, b=b, stem=True, stop=True) for k1, b in ALIKE],
        "unlike": [
            usual,
            lexical(texts, queries, stem=False, **plain),
            lexical(titles, queries, stem=True, **plain),
            lexical([text[:400] for text in texts], queries, stem=True, **plain),
            lexical(texts, [" ".join(query.split()[:6]) for query in queries], stem=True, **plain),
            dense,
            fused(usual, dense),
        ],
    }
    ids, truths = [one["_id"] for one in documents], [judged[query["_id"]] for query in asked]
    values = {
        group: np.stack(
            [evaluate(list(MEASURES.values()), GradedRankings.from_rankings(best(one, ids), truths)) for one in scores]
        )
        for group, scores in groups.items()
    }
    return {group: dict(zip(MEASURES, found.swapaxes(0, 1), strict=True)) for group, found in values.items()}


def wilson(hits: int, trials: int) -> str:
    """A share with its 95 % interval (Wilson 1927)."""
    z, share = 1.96, hits / trials
    middle, half = share + z * z / (2 * trials), z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    low, high = ((middle + side * half) / (1 + z * z / trials) for side in (-1, 1))
    return f"{share:5.1%} [{low:.1%}, {high:.1%}]"


def pairs_of(runs: int) -> Iterator[tuple[int, int]]:
    return itertools.combinations(range(runs), 2)


def compared(values: np.ndarray, weights: np.ndarray | None = None) -> Comparison:
    return compare(values, seed=1, resamples=RESAMPLES, weights=weights)


def drawn(values: Population, queries: int, seed: int) -> np.ndarray:
    return values[:, np.random.default_rng((3, queries, seed)).integers(0, values.shape[1], queries)]


def is_low(pair: Pair) -> bool:
    return pair.p_adjusted <= 0.05


WAYS: dict[str, Callable[[Pair], bool]] = {"before": is_low, "now": lambda pair: pair.significant}


def false_findings(values: Population, queries: int, benchmarks: int) -> dict[str, str]:
    """How often a pair with centred differences is called significant: on average, and the worst, counted afresh."""
    rivals = [
        np.stack([d - d.mean(), np.zeros_like(d)])
        for a, b in pairs_of(len(values))
        if np.ptp(d := values[a] - values[b]) > 1e-9
    ]

    def count(population: Population, seeds: range) -> dict[str, int]:
        told = [compared(drawn(population, queries, seed)).pairs[0] for seed in seeds]
        return {way: sum(map(says, told)) for way, says in WAYS.items()}

    screened = benchmarks // 5
    counts = [count(population, range(screened)) for population in rivals]
    words = {}
    for way in WAYS:
        hits = [one[way] for one in counts]
        worst = count(rivals[int(np.argmax(hits))], range(screened, screened + benchmarks))[way]
        words[way] = f"{wilson(worst, benchmarks)}, mean {statistics.fmean(hits) / screened:.1%}"
    return words


def power(values: Population, queries: int, benchmarks: int) -> tuple[float, int]:
    """Of what flips find, the share that is found now, over the pairs that they find in .3 to .97; and their number."""
    shares = []
    for pair in pairs_of(len(values)):
        told = [compared(drawn(values[list(pair)], queries, seed)).pairs[0] for seed in range(benchmarks)]
        before = sum(map(is_low, told))
        if 0.3 <= before / benchmarks <= 0.97:
            shares.append(sum(one.significant for one in told) / before)
    return (statistics.fmean(shares) if shares else math.nan), len(shares)


def before_interval(comparison: Comparison, pair: Pair) -> Interval:
    half = (comparison.critical or math.inf) * pair.standard_error if pair.standard_error else 0.0
    return Interval(pair.difference - half, pair.difference + half)


def coverage(values: Population, queries: int, benchmarks: int, *, weighted: bool = False) -> dict[str, float]:
    """In how many benchmarks of FAMILY runs all simultaneous intervals hold, and how many own ones; mean widths."""
    counts = {"before": 0, "now": 0, "own": 0, "width before": 0.0, "width": 0.0}
    for seed in range(benchmarks):
        rng = np.random.default_rng((4, queries, seed))
        population = values[rng.choice(len(values), FAMILY, replace=False)]
        chosen = rng.integers(0, values.shape[1], queries)
        weights = np.random.default_rng(9).lognormal(0, 1, values.shape[1:]) if weighted else np.ones(values.shape[1])
        true = population @ weights / weights.sum()
        comparison = compared(population[:, chosen], weights[chosen] if weighted else None)
        gaps = [true[pair.first] - true[pair.second] for pair in comparison.pairs]
        old = [before_interval(comparison, pair) for pair in comparison.pairs]
        new = [pair.simultaneous or Interval(-1, 1) for pair in comparison.pairs]
        own = [pair.interval for pair in comparison.pairs]
        hold: list[list[bool]] = [
            [one.low - 1e-9 <= gap <= one.high + 1e-9 for one, gap in zip(kind, gaps, strict=True)]
            for kind in (old, new, own)
        ]
        counts["before"] += all(hold[0])
        counts["now"] += all(hold[1])
        counts["own"] += statistics.fmean(hold[2])
        counts["width before"] += statistics.fmean(min(one.high - one.low, 2) for one in old) / benchmarks
        counts["width"] += statistics.fmean(one.high - one.low for one in new) / benchmarks
    return counts


def not_inferior(values: Population, queries: int, benchmarks: int) -> dict[str, list[int]]:
    """How often a true loss of exactly the margin passes, of each pair with one of a point or more."""
    passed: dict[str, list[int]] = {"before": [], "now": []}
    t, means = float(stdtrit(queries - 1, 0.95)), values.mean(axis=1)
    for pair in itertools.permutations(range(len(values)), 2):
        margin = float(means[pair[1]] - means[pair[0]])
        if margin < 0.01:
            continue
        told = [compared(drawn(values[list(pair)], queries, seed)) for seed in range(benchmarks)]
        passed["before"].append(
            sum(one.pairs[0].difference - t * one.pairs[0].standard_error >= -margin for one in told)
        )
        passed["now"].append(sum(check_non_inferiority(one.pairs[0], one.n, margin).is_excluded for one in told))
    return passed


def detectable(values: Population, benchmarks: int) -> tuple[list[float], list[float]]:
    """How often each pair is found with as many queries as state its true difference as detectable; before and now."""
    steps = (20, 28, 40, 56, 80, 112, 160, 224, 320, 450)
    found: tuple[list[float], list[float]] = ([], [])
    z = statistics.NormalDist().inv_cdf(0.8)
    means = values.mean(axis=1)
    for pair in pairs_of(len(values)):
        gap = abs(means[pair[0]] - means[pair[1]])
        stated: list[list[float]] = [[], []]
        rates: list[list[float]] = [[], []]
        for queries in steps:
            told = [compared(drawn(values[list(pair)], queries, seed)) for seed in range(benchmarks)]
            pairs = [one.pairs[0] for one in told]
            stated[0].append(statistics.fmean(((one.critical or 9) + z) * one.pairs[0].standard_error for one in told))
            stated[1].append(statistics.fmean(one.detectable or 1.0 for one in pairs))
            rates[0].append(statistics.fmean(map(is_low, pairs)))
            rates[1].append(statistics.fmean(one.significant for one in pairs))
        for way in (0, 1):
            if stated[way][0] > gap > stated[way][-1]:
                found[way].append(float(np.interp(-gap, [-one for one in stated[way]], rates[way])))
    return found


def uniform() -> None:
    print("a run that is better by the same amount on every query: p, significant, interval")
    for name, first, second in (("Success@1 of 1 against 0", 1.0, 0.0), ("nDCG + .01", 0.51, 0.5)):
        for queries in (20, 50, 100):
            pair = compare(np.stack([np.full(queries, first), np.full(queries, second)]), seed=1).pairs[0]
            ends = pair.simultaneous and f"[{pair.simultaneous.low:+.4f}, {pair.simultaneous.high:+.4f}]"
            print(f"  {name}, {queries} queries: p {pair.p_adjusted:.4f}, {pair.significant}, {ends}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--benchmarks", type=int, default=BENCHMARKS)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    uniform()
    missing = [name for name in COLLECTIONS if not (DATA / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not in {DATA.name}: nothing else is counted. BENCHBENCH_SHARED_DATA names it.")
        return
    populations = {name: read(name) for name in COLLECTIONS}
    for title, act in SECTIONS.items():
        if given.only in title:
            print(f"{title}; {given.benchmarks} benchmarks a cell", flush=True)
            for name, groups in populations.items():
                act(name, groups, given.benchmarks)


def print_false(name: str, groups: dict[str, dict[str, Population]], benchmarks: int) -> None:
    for measure, queries in itertools.product(("AP", "nDCG", "RR"), (20, 50, 100)):
        found = false_findings(groups["alike"][measure], queries, benchmarks)
        print(f"  {name} {measure} n {queries}: {'; '.join(map(' '.join, found.items()))}", flush=True)


def print_power(name: str, groups: dict[str, dict[str, Population]], benchmarks: int) -> None:
    for group, measure in itertools.product(groups, MEASURES):
        kept, pairs = power(groups[group][measure], 50, benchmarks // 5)
        print(f"  {name} {group} {measure} n 50: {kept:.2f} of {pairs} pairs", flush=True)


def print_coverage(name: str, groups: dict[str, dict[str, Population]], benchmarks: int) -> None:
    for group, measure, queries in itertools.product(groups, MEASURES, (20, 35, 50)):
        found = coverage(groups[group][measure], queries, benchmarks)
        print(f"  {name} {group} {measure} n {queries}: {describe(found, benchmarks)}", flush=True)


def print_weighted(name: str, groups: dict[str, dict[str, Population]], benchmarks: int) -> None:
    for group, measure, queries in itertools.product(groups, ("nDCG", "Success"), (20, 35, 50, 100)):
        found = coverage(groups[group][measure], queries, benchmarks, weighted=True)
        print(f"  {name} {group} {measure} n {queries}: {describe(found, benchmarks)}", flush=True)


def describe(found: dict[str, float], benchmarks: int) -> str:
    shares = [f"{way} {wilson(int(found[way]), benchmarks)}" for way in ("before", "now")]
    widths = f"width {found['width before']:.3f} → {found['width']:.3f}"
    return f"{', '.join(shares)}, own {found['own'] / benchmarks:.1%}, {widths}"


def print_inferior(name: str, groups: dict[str, dict[str, Population]], benchmarks: int) -> None:
    for measure, queries in itertools.product(("Success", "nDCG"), (50, 100, 200)):
        found = not_inferior(groups["unlike"][measure], queries, benchmarks)
        words = [
            f"{way} worst {wilson(max(hits), benchmarks)}, mean {statistics.fmean(hits) / benchmarks:.1%}"
            for way, hits in found.items()
        ]
        print(f"  {name} {measure} n {queries}: {'; '.join(words)}", flush=True)


def print_detectable(name: str, groups: dict[str, dict[str, Population]], benchmarks: int) -> None:
    for measure in ("Success", "nDCG", "RR"):
        found = detectable(groups["unlike"][measure], benchmarks // 3)
        for way, rates in zip(WAYS, found, strict=True):
            if rates:
                found_in = f"{statistics.fmean(rates):.0%} ({min(rates):.0%} to {max(rates):.0%})"
                print(f"  {name} {measure}: {way} {found_in}", flush=True)


SECTIONS: dict[str, Callable[[str, dict[str, dict[str, Population]], int], None]] = {
    "false: a pair without a difference is called significant, the worst of 45": print_false,
    "power: what is found now of what flips find": print_power,
    "coverage: all ten simultaneous intervals of 5 runs hold": print_coverage,
    "weighted: the same, weighted by demand (lognormal, s = 1)": print_weighted,
    "inferior: a loss of the margin passes": print_inferior,
    "detectable: found where the true difference is stated as detectable with 80 %": print_detectable,
}

if __name__ == "__main__":
    main()
