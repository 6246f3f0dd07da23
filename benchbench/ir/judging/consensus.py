"""The consensus of several judges' grades of one pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Consensus:
    """The grade of a pair, or None with `split` where the judges are evenly split and somebody has to decide."""

    grade: float | None
    split: tuple[float, float] | None = None


def consensus(grades: Sequence[float]) -> Consensus:
    """The median of the judges' `grades`. None for no grades.

    Of an even number the two grades in the middle must be equal: a mean of two grades is a grade that nobody gave. If
    they differ, the pair goes to adjudication, and the two are told.
    """
    if not grades:
        return Consensus(None)
    ordered = sorted(grades)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return Consensus(low) if low == high else Consensus(None, (low, high))
