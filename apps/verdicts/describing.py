"""Descriptions that complement the test: other measures, slices, single queries, cost against quality."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import F

from apps.datasets.models import DatasetVersion, Query
from apps.records.lists.reading import load_results
from apps.records.models import Evaluation, QueryResult, Run
from apps.verdicts.comparing import MOST_RUNS, RunComparison
from apps.verdicts.ranked_runs import name_primary
from benchbench.ir.demand import weigh
from benchbench.ir.measures import Values
from benchbench.ir.slices import Reversal, Slice, find_reversals
from benchbench.ir.statistics.frontier import Choice, Point, find_cheapest, find_frontier
from benchbench.ir.statistics.resampling import MeanInterval, mean_intervals

MAX_QUERIES = 10
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class MeasureSummary:
    """One measure of every run: its mean, and its difference to the reference with an interval, without a test.

    All are over the queries on which every run has a value.
    """

    measure: str
    means: list[float | None]
    differences: list[MeanInterval]  # 0 for the reference itself


def summarise_measures(comparison: RunComparison, *, only: Sequence[int] | None = None) -> list[MeasureSummary]:
    """Return every measure that all runs have, the primary one first, on the compared queries.

    `only`: the runs whose differences get an interval, by default all.
    """
    names = sorted(comparison.values, key=lambda name: name != comparison.primary)
    values = [comparison.values[name][:, comparison.members] for name in names]
    runs, reference = len(comparison.runs), comparison.reference
    rows = np.concatenate([of_measure - of_measure[reference] for of_measure in values])
    drawn = None if only is None else {start + run for start in range(0, len(rows), runs) for run in only}
    weights = comparison.compared_weights
    seed = comparison.comparison.seed
    intervals = mean_intervals(rows, seed=seed, resamples=RESAMPLES, only=drawn, weights=weights)
    return [
        MeasureSummary(name, compute_means(run_values, weights), intervals[index * runs : (index + 1) * runs])
        for index, (name, run_values) in enumerate(zip(names, values, strict=True))
    ]


def compute_means(values: Values, weights: Values | None) -> list[float | None]:
    """Return the mean of each row of `values` over the queries with a value; None for a row without values."""
    means = [weigh(row, weights) for row in values]
    return [None if np.isnan(mean) else mean for mean in means]


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: the values of two runs, and optionally the query and their rankings of it."""

    query_id: int
    value: float
    reference_value: float
    query: Query | None = None
    result: QueryResult | None = None
    reference_result: QueryResult | None = None

    @property
    def difference(self) -> float:
        return self.value - self.reference_value


@dataclass(frozen=True, slots=True, eq=False)
class QueryDifferences:
    """Two runs by query: every difference, run − reference, and the queries with the greatest gains and losses."""

    differences: list[float]
    gains: list[QueryDifference]  # greatest first
    losses: list[QueryDifference]


def compute_query_differences(comparison: RunComparison, run: int, *, limit: int = MAX_QUERIES) -> QueryDifferences:
    """Return the query differences of `run` and the reference by the compared measure. Three database queries."""
    every = _compare_queries(comparison, run)
    ordered = sorted(every, key=lambda pair: -pair.difference)
    gains = [pair for pair in ordered[:limit] if pair.difference > 0]
    losses = [pair for pair in ordered[::-1][:limit] if pair.difference < 0]
    ids = [pair.query_id for pair in (*gains, *losses)]
    results, reference = (load_results(comparison.runs[number], ids) for number in (run, comparison.reference))
    both = [
        replace(pair, result=results.get(pair.query_id), reference_result=reference.get(pair.query_id))
        for pair in add_queries([*gains, *losses])
    ]
    return QueryDifferences([pair.difference for pair in every], both[: len(gains)], both[len(gains) :])


def list_differences(comparison: RunComparison, run: int) -> list[QueryDifference]:
    """Return the values of `run` and the reference on the compared queries, the widest gap first.

    Equal gaps keep the order of the queries.
    """
    return sorted(_compare_queries(comparison, run), key=lambda pair: -abs(pair.difference))


def add_queries(pairs: Sequence[QueryDifference]) -> list[QueryDifference]:
    """Return the pairs with their queries. One database query."""
    queries = Query.objects.in_bulk([pair.query_id for pair in pairs])
    return [replace(pair, query=queries[pair.query_id]) for pair in pairs]


def _compare_queries(comparison: RunComparison, run: int) -> list[QueryDifference]:
    """Return the values of `run` and the reference on each compared query."""
    pair = comparison.compared[[run, comparison.reference]]
    valued = ~np.isnan(pair[0])
    ids = comparison.query_ids[comparison.members][valued]
    return list(map(QueryDifference, ids.tolist(), *pair[:, valued].tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class SliceDifferences:
    """A slice: the mean of every run, and the difference of every run to the reference, with an unadjusted interval."""

    slice: Slice
    means: tuple[float | None, ...]
    differences: tuple[MeanInterval, ...]  # 0 for the reference


def compare_slices(comparison: RunComparison, *, only: Sequence[int] | None = None) -> list[SliceDifferences]:
    """Return the differences in every slice, by the compared measure, each with its own interval (2,000 resamples).

    Each interval is for one slice and one pair, without correction for their number. `only`: the runs whose differences
    get one, by default all.
    """
    seed = comparison.comparison.seed
    values = comparison.values[comparison.measure]
    differences = values - values[comparison.reference]
    rows = []
    for slice_ in comparison.slices:
        inside = slice_.members
        weights = None if comparison.weights is None else comparison.weights[inside]
        intervals = mean_intervals(differences[:, inside], seed=seed, resamples=RESAMPLES, only=only, weights=weights)
        rows.append(SliceDifferences(slice_, tuple(compute_means(values[:, inside], weights)), tuple(intervals)))
    return rows


def find_reversed_runs(comparison: RunComparison) -> list[tuple[int, Reversal]]:
    """Return (run, reversal) for partitions of which most slices contradict the order of the run and the reference."""
    values, reference = comparison.values[comparison.measure], comparison.reference
    return [
        (run, reversal)
        for run in comparison.order
        if run != reference
        for reversal in find_reversals(values[reference], values[run], comparison.slices, comparison.weights)
    ]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds on the cost of a run; None for no bound."""

    latency_ms: float | None = None
    index_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Quality, latency and index size of every run in the order of the comparison, with the frontier and the choice.

    `choice`: None if all runs exceed the bounds, and for comparisons that are untested, against a baseline, or decided
    by a judging round. Only a test of all pairs shows which runs are not significantly worse than the best.
    """

    points: tuple[Point, ...]
    frontier: tuple[int, ...]
    bounds: Bounds
    choice: Choice | None


def compute_costs(comparison: RunComparison, bounds: Bounds) -> Costs:
    """Return the costs of the compared runs, and the cheapest within `bounds` not significantly worse than the best."""
    points = tuple(
        Point(
            quality=mean,
            latency_ms=run.times.total_ms,
            index_bytes=compute_index_bytes(run),
            llm_calls=run.llm_calls / (run.times.samples or 1),  # of all repetitions, as the samples
        )
        for run, mean in zip(comparison.runs, comparison.comparison.means, strict=True)
    )
    choice = None
    if comparison.is_tested and comparison.comparison.baseline is None and not comparison.carried:
        choice = find_cheapest(
            comparison.comparison, points, max_latency_ms=bounds.latency_ms, max_index_bytes=bounds.index_bytes
        )
    return Costs(points=points, frontier=find_frontier(points), bounds=bounds, choice=choice)


def compute_index_bytes(run: Run) -> float | None:
    """Return the size of the run's index and of its copy in an approximate store, if it has one."""
    size = run.index.stats.get("bytes") if run.index else None
    if size is None:
        return None
    approximation = run.lineage.approximation
    return float(size + ((approximation and approximation.bytes) or 0))


def pick_strongest(
    runs: Iterable[Run], *, version: DatasetVersion | None = None, baseline: Run | None = None
) -> list[Run]:
    """Return the runs; of more than MOST_RUNS only those with the greatest ranked means of the primary measure.

    The means are those on `version`, by default the version of each run's benchmark. `baseline` is always included.
    """
    all_runs = list(runs)
    if len(all_runs) <= MOST_RUNS:
        return all_runs
    measured = Evaluation.objects.filter(
        Evaluation.filter_ranked(), run__in=all_runs, dataset_version=version or F("run__benchmark__dataset_version")
    )
    means = dict(measured.values_list("run_id", "means"))

    def sort_key(run: Run) -> tuple[bool, float, int]:
        mean = means.get(run.pk, {}).get(name_primary(run.benchmark))
        return run != baseline, -mean if mean is not None else 0.0, run.run_order

    return sorted(all_runs, key=sort_key)[:MOST_RUNS]
