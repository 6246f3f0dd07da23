"""The stored values of compared runs, with the slices and weights of their queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.records.measuring.slicing import load_slicings
from apps.records.models import Evaluation, Run
from apps.records.models.values import load_values
from apps.verdicts.ranked_runs import name_primary
from benchbench.ir.measures import Values
from benchbench.ir.slices import MINIMUM, Slice


@dataclass(frozen=True, kw_only=True, eq=False)
class RunValues:
    """The stored values of runs on the queries that count in their means."""

    primary: str
    seed: int
    values: dict[str, Values]  # for every measure that all runs have, (runs, queries)
    query_ids: NDArray[np.int64]
    slices: tuple[Slice, ...]  # of these queries
    skipped: int  # queries without a relevant judgment, under the policy to skip them
    weights: Values | None  # of the queries; None if means count them alike
    means_name: str  # "weighted by demand", or "" for plain means


def load_run_values(runs: Sequence[Run], measured: Mapping[UUID, Evaluation]) -> RunValues:
    """Return the values of runs whose evaluations are `measured`, by run id. One query, and those for the slices.

    The primary measure, seed, slices and policy come from the benchmark of the first run, the oldest. Under the policy
    to skip, a query counts if it has a relevant document by the mapping of every run.
    """
    benchmark, evaluations = runs[0].benchmark, [measured[run.pk] for run in runs]
    common = [name for name in evaluations[0].measures if all(name in row.measures for row in evaluations)]
    values = load_values(evaluations, common)
    of_mapping: dict[UUID, Run] = {}
    for run in runs if benchmark.empty_queries == "skip" else runs[:1]:
        of_mapping.setdefault(run.benchmark.mapping_id, run)
    slicings = load_slicings([(run.benchmark, measured[run.pk]) for run in of_mapping.values()])
    counted = np.ones(len(evaluations[0].query_ids), bool)
    if benchmark.empty_queries == "skip":
        counted = np.all([slicing.has_relevant for slicing in slicings], axis=0)
    weights = slicings[0].weights[counted] if benchmark.weighting == "demand" else None
    members = [(slice_, slice_.members[counted]) for slice_ in slicings[0].slices]
    return RunValues(
        primary=name_primary(benchmark),
        seed=benchmark.seed,
        values={name: values[:, index, counted] for index, name in enumerate(common)},
        query_ids=np.array(evaluations[0].query_ids, np.int64)[counted],
        slices=tuple(
            replace(slice_, members=inside, is_small=bool(inside.sum() < MINIMUM)) for slice_, inside in members
        ),
        skipped=int((~counted).sum()),
        weights=weights,
        means_name=benchmark.means_name,
    )
