"""How values of queries become figures of a run: which weight a query has, and in which of its slices it counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from benchbench.errors import BenchbenchError
from benchbench.ir.measures import Values


class ProfileError(BenchbenchError):
    """A name that no profile has."""

    code = "profile"


@dataclass(frozen=True, slots=True)
class Profile:
    """A way to aggregate, by its name.

    `weights`: every query weighs the same, or as much as it has judgments (of any grade), at least 1. `slices`: a query
    counts in every slice that it states, or in the first alone. Means of a slice are always plain.
    """

    name: str
    weights: Literal["equal", "judgments"] = "equal"
    slices: Literal["every", "first"] = "every"

    @classmethod
    def parse(cls, name: str) -> Profile:
        """The profile called `name`. Raises ProfileError."""
        if name not in PROFILES:
            raise ProfileError(
                f"There is no aggregation profile {name[:40]!a}; there are {', '.join(PROFILES)}.", field="profile"
            )
        return PROFILES[name]

    def __str__(self) -> str:
        return self.name

    def mean(self, values: Values, n_judgments: ArrayLike) -> float:
        """The mean of one measure, `values` (q,), over queries with so many judgments (q,).

        Σ wv / Σ w, the sums correctly rounded. A query whose value is NaN has none and is left out; NaN of nothing.
        """
        judgments = np.asarray(n_judgments, np.float64)
        weights = np.ones(len(values)) if self.weights == "equal" else np.maximum(judgments, 1.0)
        known = ~np.isnan(values)
        total = math.fsum(weights[known])
        return math.fsum((weights * values)[known]) / total if total else math.nan

    def slices_of(self, stated: Sequence[str]) -> Sequence[str]:
        """Of the slices that a query states, those in which it counts."""
        return stated if self.slices == "every" else stated[:1]


PLAIN = Profile("plain")
FLOWBABY_1_0 = Profile("flowbaby-1.0", slices="first")
FLOWBABY_1_1 = Profile("flowbaby-1.1", weights="judgments")
PROFILES = {profile.name: profile for profile in (PLAIN, FLOWBABY_1_0, FLOWBABY_1_1)}
