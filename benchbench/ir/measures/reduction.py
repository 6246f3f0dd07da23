"""Measures of the library reduced to simpler ones, whose thresholds and gains are in the grades instead.

trec_eval, written in C, reads past its arrays where a threshold is above all grades of a query, takes a time quadratic
in the gains, and memory for each grade up to the greatest. A document is relevant to it if its grade is at least 1, so
grades of 0 and 1 give the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MOST_LEVELS = 1000  # of grades that measures with graded gains get from trec_eval


@dataclass(frozen=True, slots=True)
class Regrading:
    """A change of grades: 1 from `threshold` up and 0 below, or the gain of each grade. Negative grades stay."""

    threshold: int | None = None
    gains: tuple[tuple[int, int], ...] = ()

    def build(self) -> Callable[[int], int]:
        """Return the function from a grade to its new one."""
        if self.threshold is not None:
            threshold = self.threshold
            return lambda grade: grade if grade < 0 else int(grade >= threshold)
        gains = dict(self.gains)
        return lambda grade: gains.get(grade, grade)


def reduce(measure: Any) -> tuple[Regrading, Any]:
    """Return the change of grades, and the measure to compute of the changed grades for the value of `measure`."""
    parameters = dict(measure.params)
    if "rel" in measure.SUPPORTED_PARAMS:
        threshold = parameters.get("rel", 1)
        if "rel" in parameters:
            parameters["rel"] = 1
        return Regrading(threshold=threshold), type(measure)(**parameters)
    gains = parameters.pop("gains", {})
    return Regrading(gains=tuple(sorted(gains.items()))), type(measure)(**parameters)
