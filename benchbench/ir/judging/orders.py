"""Orders in which the pairs of a pool are judged, with a uniform random sample mixed into each of them.

The sample's order is an order of the whole pool, drawn once and uniformly from the round's seed. After n judged pairs
the first ⌈share · n⌉ of the sample's order are among them. These are a simple random sample of the pool. Its size
depends on n alone and not on any grade, and each pair of the pool is in it with the same known probability. Estimates
from it are unbiased (Horvitz and Thompson 1952), regardless of how the other pairs were chosen.

An order of whole queries is drawn in the same way from the same seed, independently of the order of the pairs. The
queries at its beginning whose pairs are all judged are a simple random sample of the queries.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.judging.pool import JudgingError, Pool

SHARE = 0.1  # of a round's grades; see `SHARE` in docs/statistics.md

Numbers = NDArray[np.int64]


def order_by_depth(pool: Pool) -> Numbers:
    """Return the numbers of the pairs by best rank over the runs, (size,), as TREC pools are judged.

    All first ranks come first. Pairs of one rank are in the order of the queries.
    """
    return np.argsort(pool.best[tuple(pool.cells.T)], kind="stable")


def order_randomly(pool: Pool, *, seed: int) -> Numbers:
    """Return the numbers of the pairs in the sample's order, (size,): uniform, and equal for equal pools and seeds."""
    return np.random.default_rng((seed, 16)).permutation(pool.size)


def order_by_weight(weights: Sequence[float] | NDArray[np.float64]) -> Numbers:
    """Return the numbers of the pairs by falling weight (size,): the decisive order, of `Judging.compute_weights`."""
    return np.argsort(-np.asarray(weights, np.float64), kind="stable")


def query_order(pool: Pool, *, seed: int) -> Numbers:
    """Return the queries of a pool in uniform random order, (Q,). It depends on the number of queries and the seed.

    The order is independent of `order_randomly`.
    """
    return np.random.default_rng((seed, 17)).permutation(pool.queries)


def order_by_query(pool: Pool, queries: Numbers) -> Numbers:
    """Return the numbers of the pairs query by query, as `queries` has these, (size,); those of one by best rank."""
    turns = np.argsort(queries)
    return np.lexsort((pool.best[tuple(pool.cells.T)], turns[pool.cells[:, 0]]))


def whole_queries(queries: Numbers, waiting: Collection[int]) -> Numbers:
    """Return the fully judged queries at the beginning of a random order: those before the first with a `waiting` pair.

    Queries judged beyond that one are not a uniform sample until it is judged.
    """
    gaps = np.flatnonzero(np.isin(queries, list(waiting)))
    return queries[: gaps[0]] if len(gaps) else queries


def upcoming(primary: Numbers, sample: Numbers, assigned: Collection[int], *, share: float = SHARE) -> Iterator[int]:
    """Yield the numbers of the pairs to give out next.

    `primary` is the order that the round asks for and `sample` the sample's; `assigned` are the pairs that were given
    out already. It ends when both are used up. Raises JudgingError for a share outside 0 to 1.
    """
    require_share(share)
    out = set(assigned)
    first, drawn = iter(primary.tolist()), iter(sample.tolist())
    passed = 0
    while True:
        number = None
        while number is None and passed < sample_size(len(out) + 1, share, len(sample)):
            passed += 1
            candidate = next(drawn)
            number = None if candidate in out else candidate
        if number is None:
            number = next((candidate for candidate in first if candidate not in out), None)
        if number is None:
            return
        out.add(number)
        yield number


def sample_size(count: int, share: float, size: int) -> int:
    """Return how many pairs of the sample's order are among the first `count` of a round over `size` pairs."""
    return min(math.ceil(share * count - 1e-9), size)


def sample_of(sample: Numbers, judged: Collection[int], *, share: float = SHARE) -> Numbers:
    """Return the uniform sample among the `judged` pairs of a round. Each pair is in it with one probability, `share`.

    `sample` is the sample's order. The sample ends before the first pair of this order that is not judged yet. So it is
    valid wherever a round stops. If the grades decide when it stops, as when its question is answered, the probability
    is that of a round which stops after as many grades.
    """
    require_share(share)
    judged_pairs = set(judged).intersection(sample.tolist())
    order = sample[: sample_size(len(judged_pairs), share, len(sample))]
    missing = np.flatnonzero([number not in judged_pairs for number in order.tolist()])
    return order[: missing[0]] if len(missing) else order


def require_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise JudgingError(f"The share of random pairs must be between 0 and 1, not {share}.", field="share")
