"""The stage lists of a benchmark as they were stored: read again by whatever explains or re-cuts a ranking."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from apps.benchmarks.models import Benchmark, Run, StageList
from apps.benchmarks.planning import plan_of
from apps.benchmarks.reading import rows_of
from apps.retrieval.models import Chunk
from benchbench.ir.plan import DenseStage, EncodeStage, LexicalStage, RunPlan
from benchbench.ir.records import ScoredList

ENTRIES = 200_000  # entries of lists that a block of queries may hold: about 50 MB while they are read

Lists = dict[str, ScoredList]  # by stage key; chunks by primary key


def stored_plan(run: Run) -> RunPlan | None:
    """Return the stages of a run, as deep as its benchmark stored their lists. An external run has none: None."""
    if run.is_external:
        return None
    plan = plan_of(list(run.benchmark.runs.filter(is_external=False).order_by("run_order")))
    return next(planned for planned in plan.runs if planned.run_key == str(run.pk))


def list_keys(run: RunPlan) -> list[str]:
    """Return the keys of the stages that make lists, in the order of the stages."""
    return [stage.key for stage in run.stages if not isinstance(stage, EncodeStage)]


def blocks(run: RunPlan, query_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the queries in parts, the lists of each of which may be read together."""
    deepest = max(stage.depth for stage in run.stages if isinstance(stage, DenseStage | LexicalStage))
    size = max(1, ENTRIES // (deepest * len(list_keys(run))))
    for start in range(0, len(query_ids), size):
        yield query_ids[start : start + size]


def read_lists(
    benchmark: Benchmark, stage_keys: Collection[str], *, query_ids: Collection[int] | None = None
) -> dict[int, Lists]:
    """Return the stored lists of these stages, by query and stage key, in one query; of all queries by default.

    A stage that failed for a query left no list.
    """
    rows = StageList.objects.filter(benchmark=benchmark, stage_key__in=stage_keys)
    if query_ids is not None:
        rows = rows.filter(query__in=query_ids)
    lists: dict[int, Lists] = {}
    values = rows.values_list("query_id", "stage_key", "chunk_ids", "scores", "threshold_scores")
    for query_id, key, chunks, scores, compared in rows_of(values):
        lists.setdefault(query_id, {})[key] = ScoredList(
            np.array(chunks, np.int64),
            np.array(scores, np.float64),
            None if compared is None else np.array(compared, np.float64),
        )
    return lists


def documents_of(lists: Iterable[ScoredList]) -> dict[int, int]:
    """Return the document of each chunk in the lists, in one query."""
    chunks = np.unique(np.concatenate([np.empty(0, np.int64), *(found.ids for found in lists)]))
    return dict(Chunk.objects.filter(pk__in=chunks.tolist()).values_list("pk", "document_id"))
