"""Rankings written straight into the tables: `QueryResult` is a view of the lists that hold them."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from apps.datasets.models import Query
from apps.records.lists.final import TIMINGS
from apps.records.models import Benchmark, ListSource, QueryResult, Run, StageList
from apps.records.planning import build_own_key


def add_ranking(run: Run, query: Query, document_ids: Sequence[int] = (), **fields: Any) -> None:
    """Add a ranking to a list of the run's own; see `build_ranking`."""
    build_ranking(run, query, document_ids, **fields).save()


def build_ranking(
    run: Run,
    query: Query,
    document_ids: Sequence[int] = (),
    *,
    chunk_ids: Sequence[int] = (),
    scores: Sequence[float] = (),
    **fields: Any,
) -> StageList:
    """Return a list of the run's own that is not stored yet; `fields` are the repetition, times and the error."""
    if run.source is None:
        run.refresh_from_db(fields=["source"])
    if run.source is None:
        run.source, _ = ListSource.objects.get_or_create(benchmark=run.benchmark, key=build_own_key(run))
        run.save(update_fields=["source"])
    lists = {"chunk_ids": list(chunk_ids), "scores": list(scores), "document_ids": list(document_ids)}
    return StageList(source=run.source, query=query, lengths=[len(document_ids)], **lists, **fields)


def added_ranking(run: Run, query: Query, document_ids: Sequence[int] = (), **fields: Any) -> QueryResult:
    """Add a ranking, and return it as a view of its list."""
    add_ranking(run, query, document_ids, **fields)
    return QueryResult.objects.get(run=run, query=query)


def change_rankings(results: QuerySet[QueryResult], **fields: Any) -> None:
    """Change the lists of these rankings, and so all runs that share them."""
    lists = StageList.objects.filter(pk__in=list(results.values_list("stage_list", flat=True)))
    if "document_ids" in fields:
        for one in lists:
            one.lengths = [len(fields["document_ids"])] * len(one.lengths or ())
            one.save(update_fields=["lengths"])
    lists.update(**fields)


def delete_rankings(results: QuerySet[QueryResult]) -> None:
    """Delete the lists of these rankings, and so those of all runs that share them."""
    StageList.objects.filter(pk__in=list(results.values_list("stage_list", flat=True))).delete()


def own_rankings(benchmark: Benchmark) -> None:
    """Give the runs their rankings in lists of their own, in addition to those of the stages, as in migrated ones.

    The lists of the stages are then those without `lengths`.
    """
    for run in benchmark.runs.exclude(source=None).exclude(source__key__startswith="run "):
        rows = list(run.query_results.select_related("query"))
        run.source, run.place = None, 1
        run.save(update_fields=["source", "place"])
        for row in rows:
            times = {name: getattr(row, name) for name in TIMINGS}
            add_ranking(
                run,
                row.query,
                row.document_ids,
                chunk_ids=row.chunk_ids,
                scores=row.scores,
                repetition=row.repetition,
                error=row.error,
                **times,
            )
    StageList.objects.filter(source__benchmark=benchmark, source__runs=None).update(document_ids=None, lengths=None)
