"""Contents of the page with two runs' rankings of a query side by side, queries with the largest change first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.collections.models import Document
from apps.datasets.models import Query
from apps.records.lists.reading import load_results
from apps.records.models import Evaluation, QueryResult, Run
from apps.results.leaderboard.versions import VersionView
from apps.results.triage.queries import find_partner, get_column, load_evaluation, load_grades, order_by_gap
from apps.verdicts.ranked_runs import name_primary, select_measures

MAX_SHOWN = 20  # documents of each ranking
ROW = 10  # height of a document in the drawing
NO_RIVAL = "The benchmark has no other completed run: choose a run of another benchmark in a comparison."


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """One document of a ranking. `other_rank`: its rank in the other ranking, None if that lacks it."""

    rank: int
    document_id: int
    document: Document | None
    grade: int | None
    other_rank: int | None

    @property
    def move(self) -> int:
        """Number of ranks by which it is higher here than in the other ranking; below 0 if it is lower."""
        return 0 if self.other_rank is None else self.other_rank - self.rank


@dataclass(frozen=True, slots=True)
class Column:
    """One of two rankings: its run, value, result and first documents. A failed query has an error, no documents."""

    run: Run
    value: float | None
    result: QueryResult | None
    documents: list[RankedDocument]


@dataclass(frozen=True, slots=True)
class Line:
    """The line that joins a document's places, by the heights of its ends. One that `leaves` ends below the list."""

    document_id: int
    grade: int | None
    start: int
    end: int
    leaves: bool


def build_pair_context(run: Run, against: Run | None, params: Mapping[str, str], *, at: VersionView) -> dict[str, Any]:
    """Return the context of the page. Query string: `query` (a key), `by` (measure); `against` is the other run.

    The defaults are the query with the largest difference, the primary measure, and the next run of the benchmark.
    Values and grades are those on the version of `at`. If the runs are not comparable, `refusals` gives the reasons.
    """
    benchmark = run.benchmark
    siblings = benchmark.runs.filter(status=Run.Status.COMPLETED).exclude(pk=run.pk).order_by("run_order")
    rivals = list(siblings.select_related("benchmark"))
    against = against or next((rival for rival in rivals if rival.run_order > run.run_order), next(iter(rivals), None))
    other_run, other_evaluation, refusals = find_partner(run, against, at.version)
    names = [name_primary(benchmark), *select_measures(benchmark, benchmark.primary_k)]
    measure = params.get("by", "") if params.get("by") in names else names[0]
    context: dict[str, Any] = {
        "run": run,
        "against": against,
        "at": at,
        "rivals": rivals,
        "measures": names,
        "measure": measure,
    }
    evaluation = load_evaluation(run, version=at.version)
    if notes := [row.benchmark.rankings_note for row in (run, other_run) if row and row.benchmark.rankings_note]:
        return context | {"refusals": notes[:1]}
    if other_run is None or evaluation is None or other_evaluation is None:
        return context | {"refusals": refusals or [NO_RIVAL]}
    order = order_by_gap(evaluation.query_ids, evaluation, other_evaluation, measure)
    key = params.get("query", "")
    query_id = at.version.queries.filter(key=key).values_list("pk", flat=True).first() if key else None
    context |= {"unknown": key if query_id is None else "", **_find_neighbours(order, query_id)}
    if context["query"] is None:
        return context
    return context | _compare(context["query"], (run, other_run), (evaluation, other_evaluation), names, measure, at)


def _find_neighbours(order: Sequence[int], query_id: int | None) -> dict[str, object]:
    """Return a query, by default the first, with its place in the order and the queries around it.

    A query without a value in both runs has no place.
    """
    query_id = query_id or next(iter(order), None)
    number = order.index(query_id) if query_id in order else None
    around = [] if number is None else [order[n] if 0 <= n < len(order) else None for n in (number - 1, number + 1)]
    queries = Query.objects.in_bulk([key for key in (query_id, *around) if key is not None])
    previous, following = [queries.get(key) for key in around] or [None, None]
    return {
        "query": queries.get(query_id),
        "place": None if number is None else number + 1,
        "count": len(order),
        "previous": previous,
        "following": following,
    }


def _compare(
    query: Query,
    runs: tuple[Run, Run],
    evaluations: tuple[Evaluation, Evaluation],
    names: Sequence[str],
    measure: str,
    at: VersionView,
) -> dict[str, object]:
    results = [load_results(run, [query.pk], rankings=True).get(query.pk) for run in runs]
    graded = next((result for result in results if result), None)
    if graded:
        graded.run = runs[0] if graded is results[0] else runs[1]
    grades = load_grades(graded, version=at.version) if graded else {}
    values = [[get_column(evaluation, name).get(query.pk) for evaluation in evaluations] for name in names]
    columns = build_columns(runs, values[names.index(measure)], results, grades)
    rows = [
        (name, first, second, None if first is None or second is None else first - second)
        for name, (first, second) in zip(names, values, strict=True)
    ]
    height = ROW * max(len(column.documents) for column in columns)
    return {
        "columns": columns,
        "rows": rows,
        "height": height,
        "lines": draw_lines(columns, height),
        "shown": MAX_SHOWN,
    }


def build_columns(
    runs: Sequence[Run],
    values: Sequence[float | None],
    results: Sequence[QueryResult | None],
    grades: Mapping[int, int],
) -> tuple[Column, Column]:
    """Return the first documents of two rankings, each with its rank in the other ranking. One query."""
    ranked = [result.document_ids if result and not result.error else [] for result in results]
    documents = Document.objects.defer("text", "metadata").in_bulk({pk for ids in ranked for pk in ids[:MAX_SHOWN]})

    def build(number: int) -> Column:
        ranks = {key: rank for rank, key in enumerate(ranked[1 - number], start=1)}
        places = [
            RankedDocument(rank, key, documents.get(key), grades.get(key), ranks.get(key))
            for rank, key in enumerate(ranked[number][:MAX_SHOWN], start=1)
        ]
        return Column(runs[number], values[number], results[number], places)

    return build(0), build(1)


def draw_lines(columns: tuple[Column, Column], height: int) -> list[Line]:
    """Return a line for each document of either list that both rankings have, ends at the middles of their rows."""

    def find_end(rank: int) -> int:
        return rank * ROW - ROW // 2 if rank <= MAX_SHOWN else height

    lines = {}
    for number, column in enumerate(columns):
        for entry in column.documents:
            if entry.other_rank is not None:
                ends = find_end(entry.rank), find_end(entry.other_rank)
                ends = ends if number == 0 else ends[::-1]
                lines[entry.document_id] = Line(entry.document_id, entry.grade, *ends, height in ends)
    return list(lines.values())
