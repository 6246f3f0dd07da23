"""Contents of the page of one ranking; with a second run, both rankings side by side."""

from typing import Any

from apps.benchmarks.models import QueryResult, Run
from apps.benchmarks.provenance import llm_revisions
from apps.results.leaderboard.runs import primary_measure
from apps.results.leaderboard.versions import VersionShown
from apps.results.triage import queries
from apps.results.triage.paths import paths_of
from apps.results.triage.side_by_side import side_by_side
from apps.retrieval.llms.rewriting import kept_texts
from benchbench.ir.planning.configuration import Configuration

SHOWN_HITS = 20
SHOWN_LOST = 50


def query_context(result: QueryResult, *, at: VersionShown, against: Run | None = None) -> dict[str, Any]:
    """Return what the page of a ranking shows: grades and values on the version of `at`.

    `against` is a run whose ranking of the same query stands beside it.
    """
    benchmark = result.run.benchmark
    grades = queries.grades_of(result, version=at.version)
    paths = paths_of(result, grades, hits=result.document_ids[:SHOWN_HITS], shown=SHOWN_LOST)
    other = _same_query(against, result) if against else None
    return {
        "result": result,
        "at": at,
        "query": result.query,
        "run": result.run,
        "paths": paths,
        "texts": _searched_for(result),
        "hits": [
            (hit, paths.stops.get(hit.document.pk, ()) if hit.document else ())
            for hit in queries.hits_of(result, grades, shown=SHOWN_HITS)
        ],
        "depth": len(result.document_ids),
        "values": queries.values_of(result, version=at.version),
        "others": queries.other_runs(result, version=at.version),
        "primary": primary_measure(benchmark),
        "k": benchmark.primary_k,
        "against": against,
        "shown": SHOWN_HITS,
        "columns": side_by_side(result, other, grades, shown=SHOWN_HITS) if other else None,
    }


def _searched_for(result: QueryResult) -> tuple[str, ...]:
    """The texts that a language model made of the query; none where it was asked as it is, or they are not kept.

    Those of further repetitions were never kept.
    """
    configuration = Configuration.from_dict(result.run.config)
    revisions = llm_revisions(result.run, configuration.llm or "")
    if not configuration.rewrites or result.error or result.repetition > 1 or len(revisions) != 1:
        return ()
    return kept_texts(configuration.query, configuration.llm or "", result.query.text, revision=revisions[0])


def _same_query(run: Run, result: QueryResult) -> QueryResult | None:
    """Return the run's ranking of the same query, of the same repetition where it has that."""
    results = run.query_results.filter(query=result.query_id, error="").select_related("run")
    return results.filter(repetition=result.repetition).first() or results.order_by("repetition").first()
