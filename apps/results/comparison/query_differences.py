"""Queries on which two runs differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.models import QueryResult, Run
from apps.datasets.models import Query
from apps.results.comparison.comparing import RunComparison
from benchbench.ir.measures import Values

SHOWN = 10


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: the values of two runs, and their rankings of it where they are asked for and kept."""

    query: Query
    value: float
    reference_value: float
    result: QueryResult | None = None
    reference_result: QueryResult | None = None

    @property
    def difference(self) -> float:
        return self.value - self.reference_value


@dataclass(frozen=True, slots=True, eq=False)
class QueryDifferences:
    """Two runs by query: every difference, run − reference, and the queries with the greatest, at both ends."""

    run: int
    differences: list[float]
    gains: list[QueryDifference]  # the greatest first
    losses: list[QueryDifference]


def query_differences(comparison: RunComparison, run: int, *, shown: int = SHOWN) -> QueryDifferences:
    """Return on which queries `run` and the reference differ, by the compared measure, in three database queries."""
    reference = comparison.reference
    pair, ids = _answered_by_both(comparison, run)
    differences = pair[0] - pair[1]
    order = np.argsort(-differences, kind="stable")
    gains = [place for place in order[:shown].tolist() if differences[place] > 0]
    losses = [place for place in order[::-1][:shown].tolist() if differences[place] < 0]
    wanted = [int(ids[place]) for place in (*gains, *losses)]
    queries = Query.objects.in_bulk(wanted)
    results = [_results(comparison.runs[number], wanted) for number in (run, reference)]

    def told(place: int) -> QueryDifference:
        key = int(ids[place])
        mine, other = pair[:, place].tolist()
        return QueryDifference(queries[key], mine, other, results[0].get(key), results[1].get(key))

    return QueryDifferences(
        run, differences.tolist(), [told(place) for place in gains], [told(place) for place in losses]
    )


@dataclass(frozen=True, slots=True)
class ValuePair:
    """What two runs have on one query."""

    query_id: int
    value: float
    reference_value: float


def every_difference(comparison: RunComparison, run: int) -> list[ValuePair]:
    """Return the values of `run` and the reference on the compared queries that both answered, the widest gap first.

    Equal gaps stand in the order of the queries.
    """
    pair, ids = _answered_by_both(comparison, run)
    order = np.argsort(-np.abs(pair[0] - pair[1]), kind="stable")
    rows = zip(ids[order].tolist(), *pair[:, order].tolist(), strict=True)
    return [ValuePair(query_id, value, other) for query_id, value, other in rows]


def told_differences(pairs: Sequence[ValuePair]) -> list[QueryDifference]:
    """Return the pairs with their queries, in one database query."""
    queries = Query.objects.in_bulk([pair.query_id for pair in pairs])
    return [QueryDifference(queries[pair.query_id], pair.value, pair.reference_value) for pair in pairs]


def _answered_by_both(comparison: RunComparison, run: int) -> tuple[Values, NDArray[np.int64]]:
    """Return the values (2, queries) of `run` and the reference where both have one, and the ids of these queries."""
    pair = comparison.compared[[run, comparison.reference]]
    both = ~np.isnan(pair).any(axis=0)
    return pair[:, both], comparison.query_ids[comparison.members][both]


def _results(run: Run, query_ids: Iterable[int]) -> dict[int, QueryResult]:
    """The first ranking of each query that did not fail."""
    rows = run.query_results.filter(query__in=query_ids, error="").defer("document_ids", "chunk_ids", "scores")
    return {row.query_id: row for row in rows.order_by("query_id", "-repetition")}
