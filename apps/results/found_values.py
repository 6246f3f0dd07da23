"""The stored values of several runs as arrays, on the queries that count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db.models.expressions import RawSQL
from numpy.typing import NDArray

from apps.benchmarks.models import Benchmark, Evaluation, Run
from apps.results.leaderboard import primary_measure
from apps.results.slicing import slicings_of
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
        columns = {f"column_{place}": _column(name) for place, name in enumerate(common)}
        kept = Evaluation.objects.filter(pk__in=[measured[run.pk].pk for run in runs])
        rows = {row.run_id: row for row in kept.defer("values").annotate(**columns)}
        for row in rows.values():
            row.dataset_version = first.dataset_version
        query_ids = rows[runs[0].pk].query_ids
        array = np.array([_values_on(query_ids, rows[run.pk], list(columns)) for run in runs])
        counted = np.ones(len(query_ids), bool)
        counting = (
            {run.benchmark.mapping_id: run for run in reversed(runs)} if benchmark.empty_queries == "skip" else {}
        )
        deciding = {**counting, benchmark.mapping_id: runs[0]}
        found = slicings_of([(run.benchmark, rows[run.pk]) for run in deciding.values()])
        slicings = dict(zip(deciding, found, strict=True))
        slicing = slicings[benchmark.mapping_id]
        for mapping in counting:
            counted &= slicings[mapping].has_relevant
        return cls(
            benchmark,
            {name: array[:, place, counted] for place, name in enumerate(common)},
            np.array(query_ids, np.int64)[counted],
            tuple(_narrowed(one, counted) for one in slicing.slices),
            int((~counted).sum()),
        )


def _values_on(query_ids: Sequence[int], evaluation: Evaluation, columns: Sequence[str]) -> Values:
    """The annotated columns of an evaluation on these queries, (measures, queries), NaN where it has none."""
    own = evaluation.query_ids
    stated = np.array([getattr(evaluation, column)[0] if own else [] for column in columns], float)
    if own == query_ids:
        return stated
    place = {query_id: place for place, query_id in enumerate(own)}
    values = np.full((len(columns), len(query_ids)), np.nan)
    for column, query_id in enumerate(query_ids):
        if query_id in place:
            values[:, column] = stated[:, place[query_id]]
    return values


def _narrowed(one: Slice, counted: NDArray[np.bool_]) -> Slice:
    members = one.members[counted]
    return replace(one, members=members, is_small=bool(members.sum() < MINIMUM))


def _column(measure: str) -> RawSQL:
    """The values of one measure, which the database picks out of the array: [[…]]."""
    return RawSQL(
        '"values"[array_position(measures, %s::varchar):array_position(measures, %s::varchar)]', [measure, measure]
    )
