"""Bounds of figures that chance decides, each from 1,000 repetitions of what a test computes.

A test that compares such a figure states its bounds here and calls `check_chance`. To measure one, repeat its test with
`--count 1000` and BENCHBENCH_CHANCE=FILE, which collects the figures; `describe_chance` then gives the line to write.
"""

import os
import sys
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

LEAST_DEVIATIONS = 6.0  # of a bound from the mean: of a thousand million runs one fails, if they vary normally


class Chance(NamedTuple):
    """The figures of 1,000 repetitions, and the bounds within which a test accepts one; infinite where it lacks it."""

    least: float
    mean: float
    deviation: float
    greatest: float
    low: float
    high: float


MEASURED = {
    "nearest by signs, hnsw": Chance(0.325, 0.3593, 0.0088, 0.39, 0.3, 0.5),
    "nearest by signs, ivfflat": Chance(0.335, 0.3583, 0.0089, 0.3925, 0.3, 0.5),
    "nearest of five": Chance(0.25, 0.25, 0, 0.25, 0.25, 0.25),
    "nearest in one list of ten": Chance(0.2375, 0.3407, 0.0271, 0.4375, 0.1, 0.9),
    "nearest by scanning on": Chance(0.9875, 0.9902, 0.0023, 0.9975, 0.7, 1),
    "queries that gave up at once": Chance(10, 14.44, 1.102, 16, 1, inf),
}


def check_chance(name: str, value: float) -> None:
    """Fail if a figure lies outside its bounds in MEASURED."""
    if file := os.environ.get("BENCHBENCH_CHANCE"):
        with Path(file).open("a") as lines:
            print(name, value, sep="\t", file=lines)
    bounds = MEASURED[name]
    assert bounds.low <= value <= bounds.high, f"{name}: {value} is not from {bounds.low} to {bounds.high}"


def describe_chance(file: Path) -> str:
    """Return what a file collected, a line for each figure."""
    hits: dict[str, list[float]] = {}
    for line in file.read_text().splitlines():
        name, _, value = line.rpartition("\t")
        hits.setdefault(name, []).append(float(value))
    return "\n".join(
        f'"{name}": Chance({min(values):g}, {np.mean(values):.4g}, {np.std(values):.4f}, {max(values):g}, …),'
        f"  # {len(values)} repetitions"
        for name, values in hits.items()
    )


if __name__ == "__main__":
    print(describe_chance(Path(sys.argv[1])))
