"""HNSW in pgvector through our own approximate search: build time, size, recall@10 and latency against exact search.

python perf/hnsw.py [--million]
"""
# mypy: no-strict-optional

import argparse
import os
import statistics
import time
from collections.abc import Callable

import throwaway

# Room for the whole graph of a million vectors, since pgvector builds several times slower without.
os.environ.setdefault("BENCHBENCH_ANN_BUILD_BYTES", str(3 * 2**30))
throwaway.open_site()

import numpy as np
from django.db import connection

from apps.retrieval.models import ChunkSet, Index
from apps.retrieval.search import vectors as tables
from apps.retrieval.search.ann_indexes import make_ann_index
from apps.retrieval.search.approximate import ApproximateView
from apps.retrieval.search.exact import find_nearest
from apps.retrieval.search.pgvector import explain
from benchbench.ir.planning.ann import Ann
from benchbench.ir.ranking import recall
from benchbench.ir.records import ScoredList

DIMENSION, INNER, QUERIES, DEPTH = 384, 32, 200, 10
PER_CLUSTER, SPREAD, NOISE = 1_000, 0.7, 0.02
PART = 50_000
SETTINGS = [f"hnsw(ef_search={breadth})" for breadth in (20, 40, 100, 200, 400)]
SCANS = 5  # of pgvector's own, which take seconds each at a million


def clustered(rows: int, seed: int, *, clusters: int) -> np.ndarray:
    """Unit vectors (rows, 384) around common centres, of INNER dimensions but for a little noise.

    As those of texts are: in vectors that are random in every dimension all are equally far, and no index finds the
    nearest.
    """
    fixed = np.random.default_rng(0)
    centres = fixed.standard_normal((clusters, INNER), dtype=np.float32)
    turn = np.linalg.qr(fixed.standard_normal((DIMENSION, INNER)))[0].T.astype(np.float32)
    rng = np.random.default_rng(seed)
    vectors = np.empty((rows, DIMENSION), np.float32)
    for start in range(0, rows, PART):
        part = vectors[start : start + PART]
        own = SPREAD * rng.standard_normal((len(part), INNER), dtype=np.float32)
        part[:] = (centres[rng.integers(clusters, size=len(part))] + own) @ turn
        part += NOISE * rng.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def stored(vectors: np.ndarray) -> Index:
    """An index that is there only as far as searching by vectors needs it: its table."""
    index = Index(name="clustered", dimension=DIMENSION, chunk_set=ChunkSet(chunk_count=len(vectors)))
    tables.create_table(index.vector_table, DIMENSION)
    started = time.perf_counter()
    for start in range(0, len(vectors), PART):
        part = vectors[start : start + PART]
        tables.insert_rows(index.vector_table, np.arange(start, start + len(part)), part)
    print(f"storing the vectors: {time.perf_counter() - started:.1f} s")
    with connection.cursor() as cursor:
        cursor.execute(f'VACUUM ANALYZE "{index.vector_table}"')  # as autovacuum would, some time
    return index


def each(queries: np.ndarray, search: Callable[[np.ndarray], list[ScoredList]]) -> tuple[list[ScoredList], list[float]]:
    """Search query by query; the lists, and the milliseconds of each."""
    lists, costs = [], []
    for query in queries:
        started = time.perf_counter()
        lists += search(query[None])
        costs.append((time.perf_counter() - started) * 1000)
    return lists, costs


def approximate(
    index: Index, vectors: np.ndarray, setting: Ann, queries: np.ndarray
) -> tuple[list[ScoredList], list[float]]:
    """The lists of an approximate search and what each cost, as a run is charged for it."""
    assert explain(index, setting, DEPTH)["index_used"], f"{setting} did not use its index"
    view = ApproximateView(index, vectors, setting, {})
    warming = queries[:20]
    lists = [view.find_nearest(query[None], DEPTH)[0] for query in np.concatenate([warming, queries])]
    return lists[len(warming) :], [seconds * 1000 for seconds in view.seconds[len(warming) :]]


def row(name: str, recalls: list[float], costs: list[float]) -> None:
    p50, p95 = np.percentile(costs, [50, 95])
    print(f"{name:>20} {statistics.fmean(recalls):>10.4f} {min(recalls):>12.2f} {p50:>9.2f} {p95:>9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--million", action="store_true", help="1,000,000 vectors (8 GB of memory, 10 minutes)")
    size = 1_000_000 if parser.parse_args().million else 100_000
    vectors = clustered(size, 1, clusters=size // PER_CLUSTER)
    queries = clustered(QUERIES, 2, clusters=size // PER_CLUSTER)
    print(f"{size:,} x {DIMENSION} vectors in {size // PER_CLUSTER:,} clusters, {QUERIES} queries, depth {DEPTH}")
    index = stored(vectors)
    built = make_ann_index(index, Ann.parse(SETTINGS[0]))
    print(f"building HNSW (m 16, ef_construction 64): {built.build_seconds:.1f} s, {built.bytes / 2**20:,.0f} MB")
    print(f"{'one query at a time':>20} {'recall@10':>10} {'worst query':>12} {'p50 ms':>9} {'p95 ms':>9}")
    truth, costs = each(queries, lambda query: find_nearest(vectors, query, DEPTH))
    row("exact, in memory", [1.0] * QUERIES, costs)
    scanned, costs = approximate(index, vectors, Ann.parse("pgvector:exact"), queries[:SCANS])
    row("exact, by pgvector", [recall(*pair, DEPTH) for pair in zip(scanned, truth, strict=False)], costs)
    for setting in map(Ann.parse, SETTINGS):
        found, costs = approximate(index, vectors, setting, queries)
        row(
            f"ef_search {setting['ef_search']}",
            [recall(*pair, DEPTH) for pair in zip(found, truth, strict=True)],
            costs,
        )


if __name__ == "__main__":
    main()
