"""Stored stage lists of a benchmark, read again to explain a ranking or to cut it anew."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from django.db.models import Func, QuerySet

from apps.benchmarks.measuring.reading import rows_of, streamed_rows_of
from apps.benchmarks.models import Benchmark, Run, StageList
from apps.benchmarks.planning import plan_of
from apps.retrieval.models import Chunk
from benchbench.errors import ConflictError
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import Searching
from benchbench.ir.ranking import cut, unit_scores
from benchbench.ir.records import ScoredList

Lists = dict[str, ScoredList]  # by stage key; chunks by primary key


def stored_plan(run: Run) -> RunPlan | None:
    """Return the stages of a run, as deep as its benchmark stored their lists. An external run has none: None."""
    if run.is_external:
        return None
    plan = plan_of(list(run.benchmark.runs.filter(is_external=False).select_related("index").order_by("run_order")))
    return next(planned for planned in plan.runs if planned.run_key == str(run.pk))


def list_keys(run: RunPlan) -> list[str]:
    """Return the keys of the stages that make lists, in the order of the stages."""
    return [stage.key for stage in run.stages if isinstance(stage, Searching)]


def read_lists(
    benchmark: Benchmark, stage_keys: Collection[str], *, query_ids: Collection[int] | None = None
) -> dict[int, Lists]:
    """Return the stored lists of these stages, by query and stage key, in one query; of all queries by default.

    A stage that failed for a query left no list.
    """
    rows = _lists(benchmark, stage_keys, query_ids)
    lists: dict[int, Lists] = {}
    values = rows.values_list("query_id", "source__key", "chunk_ids", "scores", "threshold_scores")
    for query_id, key, *stored in rows_of(values):
        lists.setdefault(query_id, {})[key] = _list(*stored)
    return lists


def stream_lists(
    benchmark: Benchmark, stage_keys: Collection[str], *, query_ids: Collection[int] | None = None
) -> Iterator[tuple[int, Lists, dict[int, int]]]:
    """Yield each query with its lists and the document of each chunk in them: in two queries, one's lists in memory.

    As `read_lists` else; a query without any list is not there. Until the last nothing else can be asked.
    """
    rows = _lists(benchmark, stage_keys, query_ids)
    listed = Chunk.objects.filter(pk__in=rows.annotate(chunk=Func("chunk_ids", function="unnest")).values("chunk"))
    table = np.array(list(rows_of(listed.order_by("pk").values_list("pk", "document_id"))), np.int64).reshape(-1, 2)
    values = rows.order_by("query_id").values_list("query_id", "source__key", "chunk_ids", "scores", "threshold_scores")
    for query_id, of_query in groupby(streamed_rows_of(values), key=lambda row: row[0]):
        lists = {key: _list(*stored) for _, key, *stored in of_query}
        chunks = np.concatenate([list_.ids for list_ in lists.values()])
        documents = table[np.searchsorted(table[:, 0], chunks), 1]
        yield query_id, lists, dict(zip(chunks.tolist(), documents.tolist(), strict=True))


def _lists(benchmark: Benchmark, stage_keys: Collection[str], query_ids: Collection[int] | None) -> QuerySet[StageList]:
    such = {"source__benchmark": benchmark, "source__key__in": stage_keys, "chunk_ids__isnull": False}
    return StageList.objects.filter(**such, **({} if query_ids is None else {"query__in": query_ids}))


def _list(chunks: list[int], scores: list[float], compared: list[float] | None) -> ScoredList:
    return ScoredList(
        np.array(chunks, np.int64),
        np.array(scores, np.float64),
        None if compared is None else np.array(compared, np.float64),
    )


def documents_of(lists: Iterable[ScoredList]) -> dict[int, int]:
    """Return the document of each chunk in the lists, in one query."""
    chunks = np.unique(np.concatenate([np.empty(0, np.int64), *(scored.ids for scored in lists)]))
    return dict(Chunk.objects.filter(pk__in=chunks.tolist()).values_list("pk", "document_id"))


class KeptError(ConflictError):
    """The chunks that a run kept cannot be told."""

    code = "kept_chunks"


def kept_chunks(run: Run, rankings: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return the ids of the chunks that the run kept of its last stage's list, for each query of `rankings`.

    `rankings` holds the documents that the run ranked, by query. Raises KeptError where no lists are stored, or where
    the documents of these chunks are not those.
    """
    plan = stored_plan(run)
    if plan is None:
        raise KeptError(
            "This run was made elsewhere, and its file names documents alone: which parts of them it found is not "
            "known."
        )
    lists = read_lists(run.benchmark, [plan.final], query_ids=rankings.keys())
    if lists.keys() != rankings.keys():
        raise KeptError("The lists of this run's last stage are not stored: run the benchmark again.")
    kept = {query: _kept(plan, stages[plan.final]) for query, stages in lists.items()}
    documents = documents_of(kept.values())
    chunks: dict[int, list[int]] = {query: ranked.ids.tolist() for query, ranked in kept.items()}
    for query, ids in chunks.items():
        if list(dict.fromkeys(map(documents.get, ids))) != list(rankings[query]):
            raise KeptError(
                "The stored lists are not those that this run's rankings were made of: run the benchmark again."
            )
    return chunks


def _kept(plan: RunPlan, ranked: ScoredList) -> ScoredList:
    kept = ranked.head(plan.candidates)
    compared = unit_scores(plan.unit_kind, kept.compared_scores)
    return cut(kept, unit_scores=compared, threshold=plan.threshold, top_k=plan.top_k)
