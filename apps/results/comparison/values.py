"""The stored values of several runs as arrays, on the queries that count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import in_order, rows_of
from apps.benchmarks.measuring.slicing import slicings_of
from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.benchmarks.models.values import unpacked
from apps.results.leaderboard.runs import primary_measure
from benchbench.ir.measures import Values
from benchbench.ir.slices import MINIMUM, Slice


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What the evaluations of runs hold, for the queries that are in the means."""

    benchmark: Benchmark  # the oldest, which decides where they differ
    values: dict[str, Values]
    query_ids: NDArray[np.int64]
    slices: tuple[Slice, ...]
    skipped: int

    @property
    def primary(self) -> str:
        return primary_measure(self.benchmark)

    @classmethod
    def of(cls, runs: Sequence[Run], measured: Mapping[Any, Evaluation]) -> "Found":
        """Read what the evaluations of the runs hold, by run id, in one query and what the slices cost."""
        benchmark, first = runs[0].benchmark, measured[runs[0].pk]
        common = [name for name in first.measures if all(name in measured[run.pk].measures for run in runs)]
        kept = Evaluation.objects.filter(pk__in=[measured[run.pk].pk for run in runs])
        stored = {run: row for run, *row in rows_of(kept.order_by().values_list("run_id", "query_ids", "values"))}
        for run in runs:
            measured[run.pk].query_ids = stored[run.pk][0]  # which `measured` was read without
        query_ids = first.query_ids
        array = np.array([_values_of(measured[run.pk], stored[run.pk][1], common, query_ids) for run in runs])
        counted = np.ones(len(query_ids), bool)
        counting = (
            {run.benchmark.mapping_id: run for run in reversed(runs)} if benchmark.empty_queries == "skip" else {}
        )
        deciding = {**counting, benchmark.mapping_id: runs[0]}
        found_slicings = slicings_of([(run.benchmark, measured[run.pk]) for run in deciding.values()])
        slicings = dict(zip(deciding, found_slicings, strict=True))
        slicing = slicings[benchmark.mapping_id]
        for mapping in counting:
            counted &= slicings[mapping].has_relevant
        return cls(
            benchmark,
            {name: array[:, place, counted] for place, name in enumerate(common)},
            np.array(query_ids, np.int64)[counted],
            tuple(_narrowed(slice_, counted) for slice_ in slicing.slices),
            int((~counted).sum()),
        )


def _values_of(evaluation: Evaluation, stored: bytes, names: Sequence[str], query_ids: Sequence[int]) -> Values:
    """Return the values of the measures `names` of an evaluation, (measures, queries), NaN where a query has none."""
    if not evaluation.query_ids:
        return np.full((len(names), len(query_ids)), np.nan)
    rows = unpacked(stored)[[evaluation.measures.index(name) for name in names]]
    return in_order(rows, evaluation.query_ids, query_ids)


def _narrowed(slice_: Slice, counted: NDArray[np.bool_]) -> Slice:
    members = slice_.members[counted]
    return replace(slice_, members=members, is_small=bool(members.sum() < MINIMUM))
