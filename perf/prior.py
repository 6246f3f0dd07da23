"""Makes the prior of the model of relevance (`benchbench/ir/judging/relevance.py`) from complete collections.

Benchmarks of 2 to 5 runs are drawn from each collection. A tenth to a third of the pool's grades are taken for given,
mostly of first places; the model is fitted, with a wide prior, to all grades and to the evidence that the given ones
make. A coefficient's mean is that over the collections. Its variance is that within a collection and, times 1 + 1 / the
number of collections, that between them: what is uncertain of one more collection; no spread is less than
LEAST_SPREADS.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place). The vectors of a collection
that comes without are computed once, which takes minutes, and kept in the folder for temporary files.
"""

import argparse
import csv
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchbench.ir.judging.evidence import COLUMNS, JUDGE, Features, compute_axes
from benchbench.ir.judging.pool import Pool
from benchbench.ir.judging.relevance import Prior, learn

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or ROOT.parent / "shared" / "data")
CACHE = Path(tempfile.gettempdir()) / "benchbench-vectors"
NAMES = ("adi", "cranfield", "scifact")
QUERIES, DEPTH, CUTOFF = 100, 100, 10
SEEDS = 12
UNLIKE = ("bm25", "dense", "lsa", "hybrid", "titles", "bm25 b=0")
WIDE = Prior((-2.0, *[0.0] * (len(COLUMNS) - 1)), tuple([3.0] * len(COLUMNS)), (0.0, 1.0), 1.0)
OF_JUDGE = 1.0, 0.5  # no collection has a model's grades: its evidence is taken at its word, or somewhat less
LEAST_SPREADS = 3.0, 1.5, 2.0, 2.0, 2.0, 1.0, 0.0  # three collections are few: the next one may be unlike them
LEAST_OF_RUNS = 1.0  # with all grades, coefficients of unlike runs of one benchmark spread by .65 to 1.1


@dataclass(frozen=True)
class Collection:
    """Rankings of several runs, all grades, and the vectors of its documents."""

    name: str
    runs: dict[str, list[list[str]]]
    truths: list[dict[str, float]]
    scale: list[float]
    vectors: np.ndarray
    """(n, d)."""
    rows: dict[str, int]
    """The row of each document's vector."""


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
    return np.sum([1 / (60 + rank) for rank in ranks], axis=0)


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
    ids = [document["_id"] for document in documents]
    if (folder / "minilm.npz").exists():
        kept = np.load(folder / "minilm.npz")
        rows = {query: row for row, query in enumerate(kept["query_ids"].tolist())}
        vectors = kept["query_vectors"].astype(np.float32)[[rows[query["_id"]] for query in asked]]
        dense = vectors @ kept["document_vectors"].astype(np.float32).T
    else:
        dense = semantic(texts, queries, 200)
    scores |= {"dense": dense, "lsa": semantic(texts, queries, 100), "hybrid": fused(usual, dense)}
    grades = sorted({0.0, *(grade for truth in judged.values() for grade in truth.values())})
    truths = [judged[query["_id"]] for query in asked]
    rankings = {run: best(part, ids) for run, part in scores.items()}
    return Collection(name, rankings, truths, grades, *embedded(folder, ids, texts))


def embedded(folder: Path, ids: list[str], texts: list[str]) -> tuple[np.ndarray, dict[str, int]]:
    """The vectors of documents by all-MiniLM-L6-v2, and their rows: those beside the collection, else computed once."""
    file = next((file for file in (folder / "minilm.npz", CACHE / f"{folder.name}.npz") if file.exists()), None)
    if file is None:
        from sentence_transformers import SentenceTransformer

        from apps.retrieval.encoders.model_files import find_model

        model = SentenceTransformer(str(find_model("all-MiniLM-L6-v2")), device="cpu")
        CACHE.mkdir(exist_ok=True)
        file = CACHE / f"{folder.name}.npz"
        vectors = model.encode([text.strip() or "-" for text in texts], normalize_embeddings=True)
        np.savez(file, document_ids=np.array(ids), document_vectors=vectors.astype(np.float16))
    kept = np.load(file)
    return kept["document_vectors"].astype(np.float32), {one: row for row, one in enumerate(kept["document_ids"])}


def drawn(collection: Collection, seed: int, *, runs: int, unlike: bool = False) -> tuple[list, list]:
    """A benchmark: some runs and some queries of the collection; fewer queries, where runs are to be unlike."""
    rng = np.random.default_rng((37 if unlike else 29, seed))
    queries = int(rng.integers(30, QUERIES + 1)) if unlike else QUERIES
    names = UNLIKE if unlike else list(collection.runs)
    chosen = rng.choice(names, min(runs, len(names)), replace=False)
    some = rng.choice(len(collection.truths), min(queries, len(collection.truths)), replace=False)
    rankings = [[collection.runs[run][query] for query in some] for run in chosen.tolist()]
    return rankings, [collection.truths[query] for query in some]


def axes_in(collection: Collection, pool: Pool) -> np.ndarray:
    numbers = [collection.rows[str(pool.get_item(number).document)] for number in range(pool.size)]
    return compute_axes(pool, collection.vectors, np.array(numbers))


def fitted(collection: Collection, seed: int) -> list[float]:
    """The coefficients of the common columns, the mean of those of the runs, their spread, and that of u."""
    rng = np.random.default_rng((31, seed))
    rankings, truths = drawn(collection, seed + 10_000, runs=2 + seed % 4)
    pool = Pool.from_rankings(rankings, depth=CUTOFF)
    hidden = [{one: truth.get(one, 0.0) for one in ids} for ids, truth in zip(pool.documents, truths, strict=True)]
    grades = pool.get_grades(hidden)
    turns = np.argsort(pool.best[tuple(pool.cells.T)] + 3 * rng.gumbel(size=pool.size))
    given = np.full(grades.shape, np.nan)
    cells = tuple(pool.cells[turns[: int(pool.size * rng.uniform(0.1, 0.33))]].T)
    given[cells] = grades[cells]
    features = Features(pool, axes_in(collection, pool))
    features.renew_all(given)
    model = learn(pool, features.values, (grades[tuple(pool.cells.T)] > 0).astype(float), WIDE)
    own = model.beta[len(COLUMNS) :]
    return [*model.beta[: len(COLUMNS)], own.mean(), own.std(ddof=1), model.richness]


def prior_of(collections: Sequence[Collection], seeds: int = SEEDS) -> Prior:
    fits = np.array([[fitted(collection, seed) for seed in range(seeds)] for collection in collections])
    by_collection = fits.mean(axis=1)
    between = by_collection.var(axis=0, ddof=1) * (1 + 1 / len(collections))
    means, spreads = by_collection.mean(axis=0), np.sqrt(fits.var(axis=1, ddof=1).mean(axis=0) + between)
    means[JUDGE], spreads[JUDGE] = OF_JUDGE
    common = len(COLUMNS)
    spreads[:common] = np.maximum(spreads[:common], LEAST_SPREADS)
    run = means[common], max(LEAST_OF_RUNS, np.hypot(spreads[common], means[common + 1]))
    figures = ([round(float(one), 2) for one in part] for part in (means[:common], spreads[:common], run))
    means_, spreads_, (run_mean, run_spread) = figures
    return Prior(tuple(means_), tuple(spreads_), (run_mean, run_spread), round(float(means[common + 2]), 2))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    missing = [name for name in NAMES if not (DATA / name).exists()]
    if missing:
        print(f"{', '.join(missing)} not in {DATA.name}: no prior is made. BENCHBENCH_SHARED_DATA names the folder.")
        return
    print(prior_of([read(name) for name in NAMES]))


if __name__ == "__main__":
    main()
