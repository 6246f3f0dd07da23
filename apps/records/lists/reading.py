"""Bulk reading of the stored lists of stages and of the rankings of runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from django.db.models import Func, Q, QuerySet
from numpy.typing import NDArray

from apps.records.lists.final import cut_for_run
from apps.records.models import Benchmark, QueryResult, Run, StageList
from apps.records.planning import plan_of
from apps.retrieval.models import Chunk
from benchbench.database.binary import read_rows, select_array, view_array
from benchbench.errors import ConflictError
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import Searching
from benchbench.ir.records import ScoredList

Rankings = dict[int, list[int]]  # document ids, best first, by query


def group_by_source(runs: Iterable[Run]) -> dict[int | None, list[Run]]:
    """Return the runs by the source of their lists."""
    sources: dict[int | None, list[Run]] = {}
    for run in runs:
        sources.setdefault(run.source_id, []).append(run)
    return sources


def load_ranked_documents(source_id: int | None) -> dict[int, tuple[NDArray[np.int64], list[int]]]:
    """Load the documents and lengths of each query that did not fail; of several repetitions the first."""
    lists = StageList.objects.filter(source=source_id, lengths__isnull=False, error="")
    rows = lists.order_by("query_id", "repetition").values_list("query_id", select_array("document_ids"), "lengths")
    by_query: dict[int, tuple[NDArray[np.int64], list[int]]] = {}
    for query_id, documents, lengths in read_rows(rows):
        by_query.setdefault(query_id, (view_array(documents, ">i8").astype(np.int64), lengths))
    return by_query


class RankingsDeletedError(ConflictError):
    """The rankings were deleted to free disk space."""

    code = "rankings_deleted"


def require_rankings(benchmark: Benchmark) -> None:
    """Raise RankingsDeletedError if the rankings of a benchmark were deleted. Its values are kept."""
    if benchmark.rankings_note:
        raise RankingsDeletedError(benchmark.rankings_note)


def load_rankings(run: Run) -> Rankings:
    """Load the ranked document ids of each query that did not fail; of several repetitions the first.

    Raises RankingsDeletedError.
    """
    require_rankings(run.benchmark)
    rows = run.query_results.filter(error="").order_by("query_id", "repetition").values_list("query_id", "document_ids")
    rankings: Rankings = {}
    for query_id, document_ids in read_rows(rows):
        rankings.setdefault(query_id, document_ids)
    return rankings


def filter_found(run: Run, planned: RunPlan) -> QuerySet[StageList]:
    """Return the lists with chunks that the stages of a run found, before its threshold."""
    keys = [stage.key for stage in planned.stages if isinstance(stage, Searching)]
    lists = StageList.objects.filter(
        Q(source__benchmark=run.benchmark_id, source__key__in=keys) | Q(source=run.source_id)
    )
    return lists.filter(chunk_ids__len__gt=0)


Lists = dict[str, ScoredList]  # by stage key; chunks by primary key


def build_stored_plan(run: Run) -> RunPlan | None:
    """Return the stages of a run at the depth at which its benchmark stored their lists.

    None for a run that ranks documents as a whole: an external one, or that of a search engine alone.
    """
    if run.is_external or not run.configuration.needs_index:
        return None
    plan = plan_of(list(run.benchmark.runs.filter(is_external=False).select_related("index").order_by("run_order")))
    return next(planned for planned in plan.runs if planned.run_key == str(run.pk))


def list_keys(run: RunPlan) -> list[str]:
    """Return the keys of the stages that make lists, in the order of the stages."""
    return [stage.key for stage in run.stages if isinstance(stage, Searching)]


def read_lists(
    benchmark: Benchmark, stage_keys: Collection[str], *, query_ids: Collection[int] | None = None
) -> dict[int, Lists]:
    """Load the stored lists of these stages by query and stage key, in one database query; by default of all queries.

    A stage that failed for a query has no list.
    """
    lists: dict[int, Lists] = {}
    for query_id, key, *stored in read_rows(_select_lists(benchmark, stage_keys, query_ids)):
        lists.setdefault(query_id, {})[key] = _build_scored_list(*stored)
    return lists


def stream_document_lists(
    benchmark: Benchmark, stage_keys: Collection[str], *, query_ids: Collection[int] | None = None
) -> Iterator[tuple[int, Lists]]:
    """Yield each query with its lists, as `read_lists` has them, but with the document of each chunk in its place.

    Costs two database queries and holds the lists of one query in memory. Queries without lists are left out. Run no
    other query before the last is yielded.
    """
    rows = _select_lists(benchmark, stage_keys, query_ids)
    listed = Chunk.objects.filter(pk__in=rows.annotate(chunk=Func("chunk_ids", function="unnest")).values("chunk"))
    pairs = np.array(list(read_rows(listed.order_by("pk").values_list("pk", "document_id"))), np.int64)
    chunk_ids, document_ids = np.ascontiguousarray(pairs.reshape(-1, 2).T)
    ordered = rows.order_by("query_id")
    for query_id, rows_of_query in groupby(read_rows(ordered, streamed=True), key=lambda row: row[0]):
        lists = {key: _build_scored_list(*stored) for _, key, *stored in rows_of_query}
        yield (
            query_id,
            {key: replace(one, ids=document_ids[np.searchsorted(chunk_ids, one.ids)]) for key, one in lists.items()},
        )


def _select_lists(
    benchmark: Benchmark, stage_keys: Collection[str], query_ids: Collection[int] | None
) -> QuerySet[StageList, tuple[object, ...]]:
    require_rankings(benchmark)
    lists = StageList.objects.filter(source__benchmark=benchmark, source__key__in=stage_keys, chunk_ids__isnull=False)
    lists = lists if query_ids is None else lists.filter(query__in=query_ids)
    columns = map(select_array, ("chunk_ids", "scores", "threshold_scores"))
    return lists.values_list("query_id", "source__key", *columns)


def _build_scored_list(chunks: bytes, scores: bytes, compared: bytes | None) -> ScoredList:
    return ScoredList(
        view_array(chunks, ">i8").astype(np.int64),
        view_array(scores, ">f8").astype(np.float64),
        None if compared is None else view_array(compared, ">f8").astype(np.float64),
    )


def load_documents(lists: Iterable[ScoredList]) -> dict[int, int]:
    """Load the document of each chunk in the lists, in one query."""
    chunks = np.unique(np.concatenate([np.empty(0, np.int64), *(scored.ids for scored in lists)]))
    return dict(Chunk.objects.filter(pk__in=chunks.tolist()).values_list("pk", "document_id"))


class CutError(ConflictError):
    """The chunks that a run kept are unknown."""

    code = "kept_chunks"


def find_kept_chunks(run: Run, rankings: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return the ids of the chunks that the run kept of its last stage's list, for each query of `rankings`.

    `rankings` has the documents that the run ranked, by query. Raises CutError if no lists are stored or if the chunks
    belong to other documents.
    """
    plan = build_stored_plan(run)
    if plan is None:
        raise CutError("This run names only documents, so the parts of them that it found are unknown.")
    lists = read_lists(run.benchmark, [plan.final], query_ids=rankings.keys())
    if lists.keys() != rankings.keys():
        raise CutError("The lists of this run's last stage are not stored: run the benchmark again.")
    cut_lists = {query: cut_for_run(plan, stages[plan.final], top_k=plan.top_k) for query, stages in lists.items()}
    documents = load_documents(cut_lists.values())
    chunks: dict[int, list[int]] = {query: ranked.ids.tolist() for query, ranked in cut_lists.items()}
    for query, ids in chunks.items():
        if list(dict.fromkeys(map(documents.get, ids))) != list(rankings[query]):
            raise CutError("The stored lists do not match this run's rankings: run the benchmark again.")
    return chunks


def load_results(run: Run, query_ids: list[int], *, rankings: bool = False) -> dict[int, QueryResult]:
    """Load the measured result of each query: of several repetitions the first that did not fail, else one that did.

    Ranked documents, chunks and scores are deferred unless `rankings`, which raises RankingsDeletedError. Without, a
    query whose ranking was deleted has no result.
    """
    if rankings:
        require_rankings(run.benchmark)
    rows = run.query_results.filter(query__in=query_ids).order_by("query_id", "error", "repetition")
    rows = rows if rankings else rows.defer("document_ids", "chunk_ids", "scores")
    results: dict[int, QueryResult] = {}
    for result in rows:
        results.setdefault(result.query_id, result)
    return results
