"""Exact dense search against a bare torch product of the same shape, and against pgvector's own exact scan.

Ours returns float64 scores in an order that nothing disturbs, torch's topk float32 ones. Memory is how far the peak of
the resident set rises, while searching, above what was resident before: all vectors are, and have been read.

python perf/dense.py [--million]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import throwaway

throwaway.open_site()

import numpy as np
import torch

from apps.retrieval.models import Index
from apps.retrieval.search import exact
from apps.retrieval.search import vectors as tables
from apps.retrieval.search.approximate import ApproximateView
from apps.retrieval.search.exact import find_nearest
from benchbench.database.bin import drop_table
from benchbench.ir.planning.ann import Ann

QUERIES, DIMENSION, DEPTH, ROUNDS = 300, 384, 100, 7
SCANNED_QUERIES = 20  # pgvector's scan takes its time query by query
BOUND = 512 * 2**20


def unit(rows: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((rows, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def bare_torch(vectors: np.ndarray, queries: np.ndarray) -> None:
    """The product in blocks of queries that a plain script would take, and topk."""
    matrix, block = torch.from_numpy(vectors), max(1, 2**28 // (4 * len(vectors)))
    for start in range(0, len(queries), block):
        torch.topk(torch.from_numpy(queries[start : start + block]) @ matrix.T, DEPTH)


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def resident(name: str) -> int:
    """Bytes by /proc/self/status: VmRSS, what is resident; VmHWM, its peak since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def peak_growth(act: Callable[[], object]) -> int:
    """Bytes that the resident set grows by at most while `act` works. Linux only."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    act()
    return resident("VmHWM") - before


def compare(size: int, queries: np.ndarray) -> float:
    """Print one row of the table and return our seconds."""
    vectors = unit(size, 2)
    rounds = ROUNDS if size < 1_000_000 else 3
    pairs = [
        (timed(lambda: find_nearest(vectors, queries, DEPTH)), timed(lambda: bare_torch(vectors, queries)))
        for _ in range(rounds + 1)
    ][1:]  # the first warms up
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    growth = peak_growth(lambda: find_nearest(vectors, queries, DEPTH)) / 2**20
    print(f"{size:>10,} {ours:>13.3f} {theirs:>9.3f} {ratio:>7.2f} {growth:>10.0f}")
    if size == 1_000_000:
        exact.BUDGET.size = BOUND // 4
        growth = peak_growth(lambda: find_nearest(vectors, queries, DEPTH)) / 2**20
        seconds = timed(lambda: find_nearest(vectors, queries, DEPTH))
        print(
            f"{'':>10} {seconds:>13.3f} {'':>9} {'':>7} {growth:>10.0f}  with similarities of {BOUND >> 22} MB a block"
        )
        print(
            f"{'':>10} {'kept' if growth < BOUND >> 20 else 'MISSED'}: no more than {BOUND >> 20} MB beside the vectors"
        )
    return ours


def compare_with_pgvector(size: int, queries: np.ndarray) -> None:
    vectors, index = unit(size, 2), Index(dimension=DIMENSION)
    tables.create_table(index.vector_table, DIMENSION)
    tables.insert_rows(index.vector_table, np.arange(size), vectors)
    few, scan = queries[:SCANNED_QUERIES], ApproximateView(index, vectors, Ann.parse("pgvector:exact"), {})
    scan.find_nearest(few[:2], DEPTH)  # warms up
    theirs = timed(lambda: scan.find_nearest(few, DEPTH)) / len(few)
    ours = statistics.median(timed(lambda: find_nearest(vectors, queries, DEPTH)) for _ in range(ROUNDS)) / len(queries)
    print(
        f"{size:,} vectors: pgvector's scan {theirs * 1000:.1f} ms a query (mean of {len(few)}), "
        f"{theirs / ours:.0f} x BenchBench's {ours * 1000:.2f} ms (of {len(queries)} at once)"
    )
    drop_table(index.vector_table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true", help="measure 1,000,000 vectors too (1.5 GB, minutes)")
    sizes = [5_000, 100_000] + ([1_000_000] if parser.parse_args().million else [])
    queries = unit(QUERIES, 1)
    print(
        f"{QUERIES} queries, depth {DEPTH}, {DIMENSION} dimensions, median of {ROUNDS} (3 of a million), side by side"
    )
    print(f"{'vectors':>10} {'BenchBench s':>13} {'torch s':>9} {'ratio':>7} {'memory MB':>10}")
    seconds = [compare(size, queries) for size in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"cost grows with the collection's size to the power of {exponent:.2f}")
    compare_with_pgvector(100_000, queries)


if __name__ == "__main__":
    main()
