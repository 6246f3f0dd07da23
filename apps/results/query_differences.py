"""On which queries two runs differ."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from apps.benchmarks.models import QueryResult, Run
from apps.datasets.models import Query
from apps.results.comparing import RunComparison

SHOWN = 10


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """One query: the values of two runs, and their rankings of it where they are kept."""

    query: Query
    value: float
    reference_value: float
    result: QueryResult | None
    reference_result: QueryResult | None

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
    pair = comparison.compared[[run, reference]]
    both = ~np.isnan(pair).any(axis=0)
    pair, ids = pair[:, both], comparison.query_ids[comparison.members][both]
    differences = pair[0] - pair[1]
    order = np.argsort(-differences, kind="stable")
    gains = [place for place in order[:shown].tolist() if differences[place] > 0]
    losses = [place for place in order[::-1][:shown].tolist() if differences[place] < 0]
    wanted = [int(ids[place]) for place in (*gains, *losses)]
    queries = Query.objects.in_bulk(wanted)
    results = [_results(comparison.runs[one], wanted) for one in (run, reference)]

    def told(place: int) -> QueryDifference:
        key = int(ids[place])
        mine, other = pair[:, place].tolist()
        return QueryDifference(queries[key], mine, other, results[0].get(key), results[1].get(key))

    return QueryDifferences(run, differences.tolist(), [told(one) for one in gains], [told(one) for one in losses])


def _results(run: Run, query_ids: Iterable[int]) -> dict[int, QueryResult]:
    """The first ranking of each query that did not fail."""
    rows = run.query_results.filter(query__in=query_ids, error="").defer("document_ids", "chunk_ids", "scores")
    return {row.query_id: row for row in rows.order_by("query_id", "-repetition")}
