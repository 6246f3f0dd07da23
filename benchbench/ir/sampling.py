"""Samples of queries by demand: strata of frequency, and a draw in each with probability proportional to its count.

The weight of a drawn query is its count over its probability (Horvitz & Thompson 1952). The draw is systematic over a
random order (Madow 1949), so the weights of a stratum sum to its demand, and weighted sums are without bias.
"""

import random
from collections.abc import Sequence

BITS = 53


def split_by_demand(counts: Sequence[int], strata: int, *, seed: str) -> list[list[int]]:
    """Return the indexes of queries in strata of about equal demand, the most frequent first.

    A query belongs to the stratum in which the demand before it ends. The order of equal counts is random.
    """
    generator = random.Random(seed)
    ties = [generator.random() for _ in counts]
    total, before = sum(counts), 0
    members: list[list[int]] = [[] for _ in range(strata)]
    for index in sorted(range(len(counts)), key=lambda index: (-counts[index], ties[index])):
        members[before * strata // total].append(index)
        before += counts[index]
    return members


def draw_by_demand(counts: Sequence[int], size: int, *, seed: str) -> dict[int, float]:
    """Return the indexes of at most `size` (≥ 1) drawn queries with their weights, which sum to the sum of the counts.

    A query whose count is at least its share of the demand is taken for certain, and stands for itself. Each of the
    others stands for an equal part of the rest of the demand. Counts are at least 1.
    """
    generator = random.Random(seed)
    by_count = sorted(range(len(counts)), key=lambda index: counts[index], reverse=True)
    demand = sum(counts)
    weights: dict[int, float] = {}
    for index in by_count:
        if counts[index] * (size - len(weights)) < demand:
            break
        weights[index] = float(counts[index])
        demand -= counts[index]
    places, start = size - len(weights), generator.getrandbits(BITS)
    order = sorted(by_count[len(weights) :], key=lambda index: generator.random())
    drawn, cumulated = 0, 0
    for index in order:
        cumulated += counts[index]
        # The points start, start + 1, … of `places` equal steps; in integers, so that none is missed by rounding.
        if drawn < places and (start + (drawn << BITS)) * demand < cumulated * places << BITS:
            weights[index] = demand / places
            drawn += 1
    return weights
