"""Cranfield searched through every store: filling, size, latency, recall and loss in nDCG; and what an arm costs beside
its own client called bare.

The first table is a benchmark, isolated, as a team would run it; exact arms must rank as exact search does. The second
asks each arm and the bare client in turns, query by query, at a depth of 100: on Cranfield and on 20,000 synthetic
vectors, where a store has something to do. Ours adds the scoring of what is nominated in float64.

Needs the test collections beside the checkout (BENCHBENCH_SHARED_DATA names another place), and every store.
"""
# mypy: no-strict-optional

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import throwaway

throwaway.open_site()

import apsw
import chromadb
import faiss
import lancedb
import numpy as np
import sqlite_vec
from django.db import connection
from pgvector import Vector

from apps.execution.defining.creating import BenchmarkOptions, create_benchmark
from apps.execution.launching import launch
from apps.mappings.beir import import_beir
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from apps.records.models.provenance import Approximation, RecallShare
from apps.retrieval.encoders.encoding import compute_query_vectors
from apps.retrieval.models import Index
from apps.retrieval.search.approximate import ApproximateView, locate_collections
from apps.retrieval.search.vectors import map_vectors
from apps.retrieval.stores import STORES
from apps.retrieval.stores.filling import name_collection, open_collection
from benchbench.ir.planning.ann import Ann

DATA = Path(os.environ.get("BENCHBENCH_SHARED_DATA") or throwaway.ROOT.parent / "shared" / "data") / "cranfield"
DEPTH, ROUNDS, SYNTHETIC = 100, 5, 20_000
EXACT = ["exact", "pgvector:exact", "sqlite_vec:exact", "faiss:exact", "lancedb:exact"]
APPROXIMATE = [
    *("hnsw(ef_search=100)", "ivfflat(lists=40, probes=5)", "chromadb:hnsw", "faiss:hnsw", "faiss:hnsw(ef_search=100)"),
    *("faiss:ivfpq(lists=40, probes=5)", "lancedb:ivfpq", "lancedb:ivfpq(lists=5, probes=2)"),
]
BARE = ["pgvector:exact", "sqlite_vec:exact", "chromadb:hnsw", "faiss:exact", "faiss:hnsw", "lancedb:exact"]

Search = Callable[[np.ndarray], Any]


def measured() -> Benchmark:
    imported = import_beir(DATA, name="cranfield")
    if imported.indexed.operation:
        wait(imported.indexed.operation)
    options = BenchmarkOptions(
        name="stores",
        matrix={"ann": [*EXACT, *APPROXIMATE], "top_k_values": [DEPTH]},
        execution=Benchmark.Execution.ISOLATED,
        runs_per_query=1,
    )
    benchmark = create_benchmark(imported.mapping, options)
    wait(launch(benchmark))
    return benchmark


def tell(benchmark: Benchmark) -> None:
    runs = {run.config.get("ann", "exact"): run for run in benchmark.runs.all()}
    truth = rankings(runs["exact"])
    heads = ("fill s", "MB", "p50 ms", "p95 ms", "recall@10", "worst", "nDCG@10", "as exact")
    print(f"{'':>34} " + " ".join(f"{head:>9}" for head in heads))
    for ann, run in runs.items():
        facts = run.lineage.approximation or Approximation()
        recall = next(iter(facts.recall), RecallShare(10, 1.0, 1.0))
        costs = [one.total_ms - (one.encode_ms or 0) for one in run.query_results.all()]
        lost = -(facts.ndcg.cost or 0.0) if facts.ndcg else 0.0
        print(
            f"{ann:>34} {facts.build_seconds or 0:>9.2f} {(facts.bytes or 0) / 2**20:>9.1f} "
            f"{np.percentile(costs, 50):>9.2f} {np.percentile(costs, 95):>9.2f} {recall.mean:>9.3f} "
            f"{recall.worst:>9.2f} {lost:>+9.4f} {'yes' if rankings(run) == truth else 'no':>9}"
        )
        if ann in EXACT:
            assert rankings(run) == truth, f"{ann} ranks otherwise than exact search"


def rankings(run: Run) -> list[tuple[list[int], list[float]]]:
    return [(one.document_ids, one.scores) for one in run.query_results.order_by("query_id")]


def bare(ann: str, folder: Path, index: Index | None) -> Search:
    """The client of a store as its documentation calls it, on the files that the arm searches, or a copy."""
    setting = Ann.parse(ann)
    if setting.store == "faiss":
        opened = faiss.read_index(str(folder / "index.faiss"))
        return lambda query: opened.search(query[None], DEPTH)
    if setting.store == "sqlite_vec":
        database = apsw.Connection(str(folder / "vectors.sqlite"))
        database.enable_load_extension(True)
        database.load_extension(sqlite_vec.loadable_path())
        statement = "SELECT rowid, distance FROM chunks WHERE embedding MATCH ? AND k = ?"
        return lambda query: list(database.execute(statement, (query.tobytes(), DEPTH)))
    if setting.store == "chromadb":
        copy = shutil.copytree(folder, Path(tempfile.mkdtemp()) / "copy")  # it writes to what it opens
        quiet = chromadb.config.Settings(anonymized_telemetry=False)
        rows = chromadb.PersistentClient(str(copy), quiet).get_collection("vectors", embedding_function=None)
        return lambda query: rows.query(query_embeddings=query[None], n_results=DEPTH, include=["distances"])
    if setting.store == "lancedb":
        table = lancedb.connect(folder).open_table("vectors")
        return lambda query: (
            table.search(query)
            .distance_type("dot")  # type: ignore[attr-defined]  # of a vector query
            .limit(DEPTH)
            .select(["id", "_distance"])
            .to_arrow()
        )
    assert index is not None
    return lambda query: scanned(index, query)


def scanned(index: Index, query: np.ndarray) -> list[Any]:
    with connection.cursor() as cursor:
        order = f'SELECT id FROM "{index.vector_table}" ORDER BY embedding <#> %s::vector LIMIT {DEPTH}'
        cursor.execute(order, [Vector(query).to_text()])
        return cursor.fetchall()


def compare(index: Index | None, vectors: np.ndarray, queries: np.ndarray, folder: Path) -> None:
    print(f"{len(vectors):,} x {vectors.shape[1]}: {'ours ms':>24} {'bare ms':>9} {'ratio':>7}  of {ROUNDS} rounds")
    for ann in BARE:
        setting = Ann.parse(ann)
        if setting.store not in STORES and index is None:
            continue
        where, store = folder / name_collection(setting), STORES.get(setting.store)
        holds = index.fingerprint if index else "synthetic"
        kept = open_collection(where, store, setting, vectors, holds=holds) if store else None
        view = ApproximateView(index, vectors, setting, {}, kept.collection if kept else None)
        theirs = bare(ann, where, index)
        pairs = list(rounds(view, theirs, queries))
        ratios = sorted(ours / alone for ours, alone in pairs[1:])  # the first warms up
        mine, alone = (statistics.median(side) * 1000 for side in zip(*pairs[1:], strict=True))
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(f"{ann:>32} {mine:>12.3f} {alone:>9.3f} {statistics.median(ratios):>7.2f}  {spread}")


def rounds(view: ApproximateView, theirs: Search, queries: np.ndarray) -> Iterator[tuple[float, float]]:
    """The median seconds of a query by the arm, as a run is charged for it, and by the bare client, in turns.

    Each is asked other queries than the other just was, whose vectors would be in the processor's cache, and goes first
    every second time.
    """
    others = np.roll(queries, len(queries) // 2, axis=0)
    for _ in range(ROUNDS + 1):
        costs = []
        for number, (query, other) in enumerate(zip(queries, others, strict=True)):
            if number % 2:
                view.find_nearest(query[None], DEPTH)
            started = time.perf_counter()
            theirs(other)
            costs.append(time.perf_counter() - started)
            if not number % 2:
                view.find_nearest(query[None], DEPTH)
        yield statistics.median(view.seconds[-len(queries) :]), statistics.median(costs)


def main() -> None:
    benchmark = measured()
    index = Index.objects.get()
    print(f"{index.chunk_set.chunk_count:,} documents, {index.dimension} dimensions, depth {DEPTH}, isolated")
    tell(benchmark)
    texts = list(benchmark.dataset_version.queries.values_list("text", flat=True))
    queries = np.stack([one.vector for one in compute_query_vectors(index, texts)])
    compare(index, map_vectors(index), queries, locate_collections(index))
    random = np.random.default_rng(1).standard_normal((SYNTHETIC + 100, 384)).astype(np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        compare(None, random[:SYNTHETIC], random[SYNTHETIC:], Path(folder))


if __name__ == "__main__":
    main()
