"""What few grades settle, counted where all grades are known, and the time of a state after one more grade.

Real collections with their grades hidden: benchmarks of 100 queries, drawn by 50 seeds from Cranfield and SciFact (what
is not listed there counts as judged not relevant), of 2 runs and of 5. A round asks for grades in decisive order, by
depth, or by depth with the unjudged not relevant as pages have it, until its verdict is that of all grades and stays
so, and, by itself, until it says "settled".

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place); without them it says so and
does the rest.
"""

import argparse
import csv
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchbench.ir.judging import orders
from benchbench.ir.judging.judging import Judging
from benchbench.ir.judging.pool import Pool
from benchbench.ir.measures import GradedRankings, Measure, evaluate
from benchbench.ir.statistics.significance import compare
from benchbench.ir.statistics.verdict import verdict

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or ROOT.parent / "shared" / "data")
MEASURE = Measure("nDCG", 10)
QUERIES, DEPTH, SEEDS = 100, 100, 50
ORDERS = ("decisive", "depth", "depth, unjudged not relevant")
GROWTH, FIRST = 1.1, 10  # a state is asked for after so many more grades


@dataclass(frozen=True)
class Collection:
    """Rankings of several runs, and all grades."""

    name: str
    runs: dict[str, list[list[str]]]
    truths: list[dict[str, float]]
    scale: list[float]


def lexical(texts: list[str], queries: list[str], *, k1: float, b: float, stem: bool, stop: bool) -> np.ndarray:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english") if stem else None
    words = bm25s.tokenize(texts, stopwords="en" if stop else None, stemmer=stemmer, show_progress=False)
    index = bm25s.BM25(k1=k1, b=b)
    index.index(words, show_progress=False)
    asked = bm25s.tokenize(
        queries, stopwords="en" if stop else None, stemmer=stemmer, show_progress=False, return_ids=False
    )
    return np.stack([index.get_scores(tokens) for tokens in asked])


def semantic(texts: list[str], queries: list[str], size: int) -> np.ndarray:
    """Latent semantic analysis: singular vectors of weighted words."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    reduced = TruncatedSVD(size, random_state=0)
    documents = normalize(reduced.fit_transform(words.fit_transform(texts)))
    return normalize(reduced.transform(words.transform(queries))) @ documents.T


def best(scores: np.ndarray, ids: list[str]) -> list[list[str]]:
    return [[ids[place] for place in np.argsort(-row, kind="stable")[:DEPTH]] for row in scores]


def fused(*scores: np.ndarray) -> np.ndarray:
    ranks = [np.argsort(np.argsort(-part, axis=1, kind="stable"), axis=1) for part in scores]
    return sum(1 / (60 + rank) for rank in ranks)


def read(name: str) -> Collection:
    folder = DATA / name
    documents = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    judged: dict[str, dict[str, float]] = {}
    for row in csv.DictReader((folder / "qrels" / "test.tsv").open(), delimiter="\t"):
        judged.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    asked = [query for line in (folder / "queries.jsonl").open() if (query := json.loads(line))["_id"] in judged]
    texts = [f"{document['title']} {document['text']}" for document in documents]
    titles, queries = [document["title"] or "-" for document in documents], [query["text"] for query in asked]
    usual = lexical(texts, queries, k1=1.5, b=0.75, stem=True, stop=True)
    scores = {
        "bm25": usual,
        "bm25 k1=.9 b=.4": lexical(texts, queries, k1=0.9, b=0.4, stem=True, stop=True),
        "bm25 k1=2.5 b=.9": lexical(texts, queries, k1=2.5, b=0.9, stem=True, stop=True),
        "bm25 b=0": lexical(texts, queries, k1=1.2, b=0.0, stem=True, stop=True),
        "bm25 unstemmed": lexical(texts, queries, k1=1.5, b=0.75, stem=False, stop=True),
        "bm25 all words": lexical(texts, queries, k1=1.5, b=0.75, stem=False, stop=False),
        "titles": lexical(titles, queries, k1=1.5, b=0.75, stem=True, stop=True),
    }
    if (folder / "minilm.npz").exists():
        kept = np.load(folder / "minilm.npz")
        rows = {query: row for row, query in enumerate(kept["query_ids"].tolist())}
        vectors = kept["query_vectors"].astype(np.float32)[[rows[query["_id"]] for query in asked]]
        dense = vectors @ kept["document_vectors"].astype(np.float32).T
    else:
        dense = semantic(texts, queries, 200)
    scores |= {"dense": dense, "lsa": semantic(texts, queries, 100), "hybrid": fused(usual, dense)}
    ids = [document["_id"] for document in documents]
    grades = sorted({0.0, *(grade for truth in judged.values() for grade in truth.values())})
    truths = [judged[query["_id"]] for query in asked]
    return Collection(name, {run: best(part, ids) for run, part in scores.items()}, truths, grades)


def drawn(collection: Collection, seed: int, *, runs: int) -> tuple[list, list]:
    """A benchmark: some runs and some queries of the collection."""
    rng = np.random.default_rng((29, seed))
    chosen = rng.choice(list(collection.runs), min(runs, len(collection.runs)), replace=False)
    some = rng.choice(len(collection.truths), min(QUERIES, len(collection.truths)), replace=False)
    rankings = [[collection.runs[run][query] for query in some] for run in chosen.tolist()]
    return rankings, [collection.truths[query] for query in some]


def group_of(rankings: list, truths: list, seed: int) -> tuple[int, ...]:
    """The verdict as pages have it: an unjudged document is not relevant."""
    values = [evaluate([MEASURE], GradedRankings.of(run, truths))[0] for run in rankings]
    return tuple(sorted(verdict(compare(np.stack(values), seed=seed)).group))


@dataclass
class Round:
    """One simulated round: after how many grades what was said."""

    said: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    stopped: int | None = None
    stop_verdict: tuple[int, ...] = ()
    forecasts: list[tuple[int, int]] = field(default_factory=list)

    def until(self, truth: tuple[int, ...]) -> int:
        """After how many grades the verdict is the true one from then on."""
        right = self.said[-1][0]
        for grades, group in reversed(self.said):
            if group != truth:
                break
            right = grades
        return right


def checkpoints(size: int) -> Iterator[int]:
    at = FIRST
    while at < size:
        yield at
        at = max(at + FIRST, int(at * GROWTH))
    yield size


def played(rankings: list, hidden: list, scale: list[float], order: str, seed: int) -> Round:
    """A round in one order, to its last pair."""
    pool = Pool.of(rankings, depth=MEASURE.cutoff)
    truths: list[dict[str, float]] = [{} for _ in hidden]
    naive = order == "depth, unjudged not relevant"
    judging = None if naive else Judging(pool, MEASURE, scale, truths, seed=seed)
    sample, given, result = orders.random_order(pool, seed=seed), set(), Round()
    for target in checkpoints(pool.size):
        by_weight = order == "decisive" and judging is not None
        primary = orders.weight_order(judging.weights()) if by_weight else orders.depth_order(pool)
        coming = orders.upcoming(primary, sample, given, share=0.0 if naive else orders.SHARE)
        for _ in range(target - len(given)):
            number = next(coming)[0]
            given.add(number)
            item = pool.item(number)
            grade = hidden[item.query].get(item.document, 0.0)
            truths[item.query][item.document] = grade
            if judging is not None:
                judging.grade(item, grade)
        if judging is None:
            result.said.append((target, group_of(rankings, truths, seed)))
            continue
        state = judging.state(bounds=False)
        result.said.append((target, state.verdict))
        if state.more.middle is not None:
            result.forecasts.append((target, target + state.more.middle))
        if state.settled and result.stopped is None:
            result.stopped, result.stop_verdict = target, state.verdict
    return result


def few_grades(seeds: int) -> None:
    """How many grades each order needs, on real collections."""
    for name in ("cranfield", "scifact"):
        if not (DATA / name).exists():
            print(f"{name} is not in {DATA.name}: its rounds are left out. BENCHBENCH_SHARED_DATA names the folder.")
            continue
        collection = read(name)
        for runs in (2, 5):
            rounds: dict[str, list[tuple[int, int, bool]]] = {order: [] for order in ORDERS}
            sizes, ratios = [], []
            for seed in range(seeds):
                rankings, truths = drawn(collection, seed, runs=runs)
                pool = Pool.of(rankings, depth=MEASURE.cutoff)
                hidden = [  # of the pool alone: what no run returned is judged in no order
                    {document: truth.get(document, 0.0) for document in ids}
                    for ids, truth in zip(pool.documents, truths, strict=True)
                ]
                true = group_of(rankings, hidden, seed)
                sizes.append(pool.size)
                for order in ORDERS:
                    result = played(rankings, hidden, collection.scale, order, seed)
                    stopped = result.stopped or pool.size
                    wrong = result.stopped is not None and result.stop_verdict != true
                    rounds[order].append((result.until(true), stopped, wrong))
                    if order == "decisive":
                        ratios += [(said - at) / (stopped - at) for at, said in result.forecasts if 50 <= at < stopped]
            print(f"{name}, {runs} runs x {QUERIES} queries, {seeds} seeds, {statistics.mean(sizes):,.0f} pairs")
            for order, told in rounds.items():
                until, stopped, wrong = zip(*told, strict=True)
                print(
                    f"  {order}: the verdict of all grades after {statistics.mean(until):,.0f} (median "
                    f"{statistics.median(until):,.0f}), says settled after {statistics.mean(stopped):,.0f}, "
                    f"wrong {sum(wrong)} of {seeds}",
                    flush=True,
                )
            low, middle, high = np.quantile(ratios or [np.nan], [0.25, 0.5, 0.75])
            print(f"  grades foretold over grades needed: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}")


def speed() -> None:
    """A state after one more grade, of 16 runs x 300 queries; and the first, when a process opens the round."""
    rng = np.random.default_rng(1)
    base = rng.normal(size=(300, 400))
    scores = base + 0.5 * rng.normal(size=(16, 300, 400))
    pool = Pool.of([[row.tolist() for row in run] for run in np.argsort(-scores, axis=2)[:, :, :100]], depth=10)
    started = time.perf_counter()
    judging = Judging(pool, MEASURE, [0, 1, 2, 3], [{} for _ in range(300)])
    first = orders.depth_order(pool).tolist()
    for number in first[:1_500]:
        judging.grade(pool.item(number), float(base[pool.item(number)] > 1.5))
    judging.state()
    opened = time.perf_counter() - started
    seconds = []
    for number in first[1_500:1_540]:
        judging.grade(pool.item(number), 1)
        started = time.perf_counter()
        judging.state()
        seconds.append(time.perf_counter() - started)
    print(
        f"16 runs x 300 queries, {pool.size:,} pairs: a state after one more grade "
        f"{statistics.median(seconds) * 1000:.0f} ms, the slowest of 40 {max(seconds) * 1000:.0f} ms; opened in "
        f"{opened:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="benchmarks drawn from each collection")
    asked = parser.parse_args()
    speed()
    few_grades(asked.seeds)


if __name__ == "__main__":
    main()
