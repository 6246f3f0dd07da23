"""SciFact measured by BenchBench, and by what one would write or take instead: time, and whether the figures agree.

The same model, the same vectors of documents, the same queries, encoded by each side from nothing. BenchBench's time
includes storing every ranking, every score and every value in PostgreSQL; the others print means and forget the rest.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place).
"""

import functools
import itertools
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import throwaway

throwaway.open_site()

import bm25s
import numpy as np
import pytrec_eval
import Stemmer
import torch
from sentence_transformers import SentenceTransformer, util
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.beir import import_beir
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.encoders.model_files import load_model
from apps.retrieval.models import CachedVector, Index

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data") / "scifact"
MODEL = "all-MiniLM-L6-v2"
MODES, TOP_K, RRF_K, THRESHOLDS = ["dense", "hybrid"], [50, 100], [20, 60, 100], [None, 0.5]
MATRIX = {"search_modes": MODES, "top_k_values": TOP_K, "rrf_k_values": RRF_K, "score_thresholds": THRESHOLDS}
DEPTH, ROUNDS = 100, 3
TREC = {"ndcg_cut.5,10,20", "P.5,10,20", "recall.5,10,20", "recip_rank", "map"}  # what a benchmark measures

Act = Callable[[], list[float]]  # measures, and returns the nDCG@10 of its runs
Rankings = dict[str, dict[str, float]]  # query → document → score


@dataclass(frozen=True)
class Task:
    """What a script reads before it begins to measure. Not in anybody's time."""

    documents: dict[str, str]
    vectors: torch.Tensor
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    model: SentenceTransformer

    @property
    def ids(self) -> list[str]:
        return list(self.documents)


def read_task() -> Task:
    with (DATA / "qrels" / "test.tsv").open() as file:
        judgments = [line.split() for line in list(file)[1:]]
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in judgments:
        qrels.setdefault(query, {})[document] = int(grade)
    documents = {one["_id"]: f"{one['title']} {one['text']}" for one in _lines(DATA / "corpus.jsonl")}
    queries = {one["_id"]: one["text"] for one in _lines(DATA / "queries.jsonl") if one["_id"] in qrels}
    made = np.load(DATA / "minilm.npz")
    assert made["document_ids"].tolist() == list(documents)
    vectors = torch.from_numpy(made["document_vectors"].astype(np.float32))
    model, _ = load_model("SentenceTransformer", MODEL)
    return Task(documents, util.normalize_embeddings(vectors), queries, qrels, model)


def _lines(file: Path) -> Iterable[dict[str, Any]]:
    with file.open() as lines:
        yield from map(json.loads, lines)


def ndcg(task: Task, rankings: Rankings) -> float:
    """Evaluate all that a benchmark measures, and return the mean nDCG@10."""
    values = pytrec_eval.RelevanceEvaluator(task.qrels, TREC).evaluate(rankings)
    return sum(value["ndcg_cut_10"] for value in values.values()) / len(task.qrels)


# Ours.


def benchmark(mapping: Mapping, matrix: dict[str, Any]) -> list[float]:
    """Make a benchmark and run it to its end, query vectors forgotten; return the nDCG@10 of its runs."""
    CachedVector.objects.all().delete()
    made = create_benchmark(mapping, BenchmarkOptions(name="against", matrix=matrix))
    wait(launch(made))
    return [run.evaluations.get().means["nDCG@10"] for run in made.runs.all()]


def lexical_benchmark(names: Iterator[str]) -> Act:
    """Import the documents anew, then return what indexes them by words and measures that."""
    imported = import_beir(DATA, name=f"scifact {next(names)}", lexical_only=True)
    operation = imported.indexed.operation
    assert operation is not None

    def act() -> list[float]:
        wait(operation)
        return benchmark(imported.mapping, {"search_modes": ["sparse"]})

    return act


# What one would take instead.


def by_evaluator(task: Task) -> list[float]:
    relevant = {query: set(grades) for query, grades in task.qrels.items()}
    evaluator = InformationRetrievalEvaluator({**task.queries}, {**task.documents}, relevant, write_csv=False)
    values = evaluator(task.model, corpus_embeddings=task.vectors)
    return [values["cosine_ndcg@10"]]


def by_semantic_search(task: Task) -> list[float]:
    """As BEIR does it: exact search, dictionaries, pytrec_eval."""
    vectors = task.model.encode(list(task.queries.values()), convert_to_tensor=True)
    found = util.semantic_search(vectors, task.vectors, top_k=DEPTH, score_function=util.dot_score)
    ids = task.ids
    rankings = {
        query: {ids[int(hit["corpus_id"])]: hit["score"] for hit in hits}
        for query, hits in zip(task.queries, found, strict=True)
    }
    return [ndcg(task, rankings)]


def words(texts: Iterable[str]) -> Any:
    return bm25s.tokenize(list(texts), stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)


def bm25_index(task: Task) -> bm25s.BM25:
    engine = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    engine.index(words(task.documents.values()), show_progress=False)
    return engine


def bm25_search(engine: bm25s.BM25, texts: Iterable[str], ids: list[str], depth: int) -> list[dict[str, float]]:
    numbers, scores = engine.retrieve(words(texts), k=depth, show_progress=False)
    return [
        {ids[number]: float(score) for number, score in zip(*row, strict=True) if score > 0}
        for row in zip(numbers, scores, strict=True)
    ]


def by_bm25s(task: Task) -> list[float]:
    """Index, retrieve, measure."""
    found = bm25_search(bm25_index(task), task.queries.values(), task.ids, DEPTH)
    return [ndcg(task, dict(zip(task.queries, found, strict=True)))]


def naive_loop(task: Task) -> list[float]:
    """Each run of the matrix for itself, query by query: encode, search, fuse, cut; then measure the run."""
    engine = bm25_index(task)
    dense = [("dense", top_k, None, least) for top_k, least in itertools.product(TOP_K, THRESHOLDS)]
    hybrid = [("hybrid", *rest) for rest in itertools.product(TOP_K, RRF_K, THRESHOLDS)]
    return [
        ndcg(task, {query: naive_ranking(task, engine, text, *run) for query, text in task.queries.items()})
        for run in dense + hybrid
    ]


def naive_ranking(
    task: Task, engine: bm25s.BM25, text: str, mode: str, top_k: int, rrf_k: int | None, least: float | None
) -> dict[str, float]:
    vector, ids = task.model.encode(text, convert_to_tensor=True), task.ids
    hits = util.semantic_search(vector, task.vectors, top_k=top_k, score_function=util.dot_score)[0]
    scores = {ids[int(hit["corpus_id"])]: hit["score"] for hit in hits}
    if mode == "hybrid":
        assert rrf_k is not None
        lists = [list(scores), list(bm25_search(engine, [text], ids, top_k)[0])]
        scores = {}
        for rank, document in itertools.chain.from_iterable(enumerate(one, start=1) for one in lists):
            scores[document] = scores.get(document, 0.0) + (rrf_k + 1) / len(lists) / (rrf_k + rank)
    kept = [document for document, score in scores.items() if least is None or score >= least]
    kept = sorted(kept, key=lambda document: (-scores[document], document))[:top_k]
    # Ranks as scores: pytrec_eval would order the many ties of RRF its own way.
    return {document: -float(rank) for rank, document in enumerate(kept)}


# Side by side.


def timed(act: Act) -> tuple[float, list[float]]:
    started = time.perf_counter()
    values = act()
    return time.perf_counter() - started, values


def compare(title: str, ours: Callable[[], Act], others: dict[str, Act], rounds: int) -> None:
    """Time each in turn, `rounds` times, and print medians. `ours` returns what is to be timed, made ready anew."""
    measured = [
        {"BenchBench": timed(ours())} | {name: timed(act) for name, act in others.items()} for _ in range(rounds)
    ]
    print(f"{title}, median of {rounds}")
    own = measured[-1]["BenchBench"][1]
    for name in measured[0]:
        seconds = statistics.median(one[name][0] for one in measured)
        ratio = statistics.median(one[name][0] / one["BenchBench"][0] for one in measured)
        values = measured[-1][name][1]
        apart = max(abs(one - other) for one, other in zip(values, own, strict=True))
        print(f"{name:>32} {seconds:8.2f} s {ratio:7.2f} x   nDCG@10 {values[0]:.4f}, differs by {apart:.1e} at most")


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"There is no {DATA}: put the test collections there.")
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    task = read_task()
    mapping = import_beir(DATA, name="scifact", vectors=DATA / "minilm.npz").mapping
    # The file names no model, and here queries are to be encoded; it is the one that made the vectors.
    Index.objects.update(encoder=MODEL)
    names = (f"{number}" for number in itertools.count(1))
    for warm_up in (lambda: benchmark(mapping, {}), lambda: by_semantic_search(task)):
        warm_up()
    compare(
        "one dense run",
        lambda: lambda: benchmark(mapping, {}),
        {
            "InformationRetrievalEvaluator": lambda: by_evaluator(task),
            "semantic_search and pytrec_eval": lambda: by_semantic_search(task),
        },
        ROUNDS,
    )
    compare(
        "one lexical run, its index included",
        lambda: lexical_benchmark(names),
        {"bm25s and pytrec_eval": lambda: by_bm25s(task)},
        ROUNDS,
    )
    ours = functools.partial(benchmark, mapping, MATRIX)
    compare("a matrix of 16 runs", lambda: ours, {"naive loop": lambda: naive_loop(task)}, 1)


if __name__ == "__main__":
    main()
