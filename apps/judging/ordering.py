"""Orders of a round: which pairs of its pool are judged, in which order, and with which probability each came in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.judging.pooling import Pair


@dataclass(frozen=True, slots=True)
class Placed:
    """A pair of the pool that is an item, in the order of the round."""

    pair: Pair
    probability: float
    uniform: bool


def place(pool: Sequence[Pair], *, order: str, budget: int | None, uniform_share: float, seed: int) -> list[Placed]:
    """Return the items of a round: a share of them drawn uniformly from the pool, the others by the order.

    A drawn pair has the probability drawn / pool; one that only the order brought in is there for certain, 1. The
    drawn ones are spread evenly over the round.
    """
    draw = np.random.default_rng(seed)
    size = len(pool) if budget is None else min(budget, len(pool))
    shuffled = draw.permutation(len(pool)).tolist()
    drawn_count = size if order == "random" else min(size, round(uniform_share * size))
    drawn = shuffled[:drawn_count]
    among = set(drawn)
    ordered = sorted(range(len(pool)), key=lambda index: (pool[index].rank, index))
    others = [index for index in ordered if index not in among][: size - drawn_count]
    probability = drawn_count / len(pool) if pool else 1.0
    merged = [(position / max(drawn_count, 1), index, True) for position, index in enumerate(drawn)]
    merged += [(position / max(len(others), 1), index, False) for position, index in enumerate(others)]
    merged.sort(key=lambda row: (row[0], not row[2]))
    return [Placed(pool[index], probability if uniform else 1.0, uniform) for _, index, uniform in merged]
