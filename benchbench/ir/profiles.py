"""Profiles: how values of queries become figures of a run, by which mean and in which slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from benchbench.errors import BenchbenchError
from benchbench.ir.demand import weigh
from benchbench.ir.measures import Values


class ProfileError(BenchbenchError):
    """A name that no profile has."""

    code = "profile"


class Mean(StrEnum):
    """Kind of mean of a measure: its queries and their weights.

    `benchmark`: all queries that the policies of a benchmark count, also those without a judgment, weigh the same, or
    by demand if that is its policy. `macro`: all queries with a judgment weigh the same, as in Flowbaby's macro metrics
    and trec_eval -c. `weighted`: each query with a judgment weighs the number of its judgments of any grade, as in
    Flowbaby's aggregate metrics.
    """

    BENCHMARK = "benchmark"
    MACRO = "macro"
    WEIGHTED = "weighted"

    @property
    def words(self) -> str:
        """Return the kind of mean as a clause."""
        return {
            Mean.BENCHMARK: "every query that the benchmark's policies count weighs the same",
            Mean.MACRO: "every query with a judgment weighs the same",
            Mean.WEIGHTED: "every query with a judgment weighs as much as it has judgments",
        }[self]

    def compute(self, values: Values, n_judgments: ArrayLike, demand: Values | None = None) -> float:
        """Return the mean of one measure, `values` (q,), over queries with `n_judgments` (q,) judgments.

        Σ wv / Σ w, with correctly rounded sums. NaN values are left out. Returns NaN if no value is left. `demand` (q,)
        are the weights of the benchmark's mean.
        """
        judgments = np.asarray(n_judgments, np.float64)
        if self is Mean.WEIGHTED:
            return weigh(values, np.maximum(judgments, 1.0))
        return weigh(values, demand if self is Mean.BENCHMARK else None)


@dataclass(frozen=True, slots=True)
class Profile:
    """A way to aggregate the values of judged queries, by its name: the mean, and in which slices a query counts.

    `slices`: a query counts in every slice that it states, or in the first alone. Means of a slice are always macro.
    """

    name: str
    mean: Mean = Mean.MACRO
    slices: Literal["every", "first"] = "every"

    @classmethod
    def parse(cls, name: str) -> Profile:
        """Return the profile called `name`. Raises ProfileError."""
        if name not in PROFILES:
            raise ProfileError(
                f"The aggregation profile {name[:40]!a} does not exist; choose one of {', '.join(PROFILES)}.",
                field="profile",
            )
        return PROFILES[name]

    def __str__(self) -> str:
        return self.name

    def find_slices(self, names: Sequence[str]) -> Sequence[str]:
        """Return those of a query's slices in which it counts."""
        return names if self.slices == "every" else names[:1]


PLAIN = Profile("plain")
FLOWBABY_1_0 = Profile("flowbaby-1.0", slices="first")
FLOWBABY_1_1 = Profile("flowbaby-1.1", Mean.WEIGHTED)
PROFILES = {profile.name: profile for profile in (PLAIN, FLOWBABY_1_0, FLOWBABY_1_1)}
