"""Contents of the page of one ranking; with a second run, both rankings side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.benchmarks.models import QueryResult, Run
from apps.benchmarks.provenance import llm_revisions
from apps.collections.models import Document
from apps.results.leaderboard.runs import primary_measure
from apps.results.leaderboard.versions import VersionShown
from apps.results.triage import queries
from apps.results.triage.paths import paths_of
from apps.retrieval.llms.asking import kept_texts
from benchbench.ir.planning.configuration import Configuration

SHOWN_HITS = 20
SHOWN_LOST = 50


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a ranking. `other` is the document's rank in the other ranking, None where that lacks it."""

    rank: int
    document: Document | None
    grade: int | None
    other: int | None

    @property
    def move(self) -> int:
        """How many places higher (below 0: lower) it stands here than in the other ranking."""
        return 0 if self.other is None else self.other - self.rank

    @property
    def drop(self) -> int:
        return -self.move


@dataclass(frozen=True, slots=True)
class Column:
    """One of the two: its result, and its first places."""

    result: QueryResult
    places: list[Place]


def query_context(result: QueryResult, *, at: VersionShown, against: Run | None = None) -> dict[str, Any]:
    """Return what the page of a ranking shows: grades and values on the version of `at`.

    `against` is a run whose ranking of the same query stands beside it.
    """
    benchmark = result.run.benchmark
    grades = queries.grades_of(result, version=at.version)
    paths = paths_of(result, grades, hits=result.document_ids[:SHOWN_HITS], shown=SHOWN_LOST)
    other = None
    if against:  # its ranking of the same query, of the same repetition where it has that
        same = against.query_results.filter(query=result.query_id, error="").select_related("run")
        other = same.filter(repetition=result.repetition).first() or same.order_by("repetition").first()
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


def side_by_side(
    first: QueryResult, second: QueryResult, grades: Mapping[int, int], *, shown: int
) -> tuple[Column, Column]:
    """Return the first `shown` places of two rankings, each with where the other has its documents, in one query."""
    wanted = {*first.document_ids[:shown], *second.document_ids[:shown]}
    documents = Document.objects.defer("text", "metadata").in_bulk(wanted)
    return (
        Column(first, _places(first, second, documents, grades, shown)),
        Column(second, _places(second, first, documents, grades, shown)),
    )


def _places(
    mine: QueryResult, other: QueryResult, documents: Mapping[int, Document], grades: Mapping[int, int], shown: int
) -> list[Place]:
    ranks = {document: rank for rank, document in enumerate(other.document_ids, start=1)}
    return [
        Place(rank, documents.get(document), grades.get(document), ranks.get(document))
        for rank, document in enumerate(mine.document_ids[:shown], start=1)
    ]
