"""Exact dense search against a bare torch product of the same shape: time, and how it grows with the collection.

python perf/dense.py [--million]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from apps.retrieval.exact import nearest

QUERIES, DIMENSION, DEPTH, ROUNDS = 300, 384, 100, 5


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", action="store_true", help="measure 1,000,000 vectors too (1.5 GB, minutes)")
    sizes = [5_000, 100_000] + ([1_000_000] if parser.parse_args().million else [])
    queries = unit(QUERIES, 1)
    print(f"{QUERIES} queries, depth {DEPTH}, {DIMENSION} dimensions, median of {ROUNDS}, side by side")
    print(f"{'vectors':>10} {'BenchBench s':>13} {'torch s':>9} {'ratio':>7}")
    ours_by_size = []
    for size in sizes:
        vectors = unit(size, 2)
        rounds = ROUNDS if size < 1_000_000 else 3
        pairs = [
            (timed(lambda: nearest(vectors, queries, DEPTH)), timed(lambda: bare_torch(vectors, queries)))  # noqa: B023
            for _ in range(rounds + 1)
        ][1:]  # the first warms up
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        ours_by_size.append(ours)
        print(f"{size:>10,} {ours:>13.3f} {theirs:>9.3f} {ratio:>7.2f}")
    exponent = np.polyfit(np.log(sizes), np.log(ours_by_size), 1)[0]
    print(f"cost grows with the collection's size to the power of {exponent:.2f}")


if __name__ == "__main__":
    main()
