"""What the page of one ranking shows; with a second run, both rankings side by side."""

from typing import Any

from apps.benchmarks.models import QueryResult, Run
from apps.results import queries
from apps.results.leaderboard import primary_measure
from apps.results.paths import paths_of
from apps.results.side_by_side import side_by_side

SHOWN_HITS = 20
SHOWN_LOST = 50


def query_context(result: QueryResult, *, against: Run | None = None) -> dict[str, Any]:
    """Return what the page of a ranking shows. `against` is a run whose ranking of the same query stands beside it."""
    benchmark = result.run.benchmark
    grades = queries.grades_of(result)
    paths = paths_of(result, grades, hits=result.document_ids[:SHOWN_HITS], shown=SHOWN_LOST)
    other = _same_query(against, result) if against else None
    return {
        "result": result,
        "query": result.query,
        "run": result.run,
        "paths": paths,
        "hits": [
            (hit, paths.stops.get(hit.document.pk, ()) if hit.document else ())
            for hit in queries.hits_of(result, grades, shown=SHOWN_HITS)
        ],
        "depth": len(result.document_ids),
        "values": queries.values_of(result),
        "others": queries.other_runs(result),
        "primary": primary_measure(benchmark),
        "k": benchmark.primary_k,
        "against": against,
        "shown": SHOWN_HITS,
        "columns": side_by_side(result, other, grades, shown=SHOWN_HITS) if other else None,
    }


def _same_query(run: Run, result: QueryResult) -> QueryResult | None:
    """Return the run's ranking of the same query, of the same repetition where it has that."""
    found = run.query_results.filter(query=result.query_id, error="").select_related("run")
    return found.filter(repetition=result.repetition).first() or found.order_by("repetition").first()
