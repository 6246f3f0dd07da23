"""Pools: what some runs returned first, each pair of query and document once, and the passages that brought it."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.benchmarks.measuring.reading import rows_of
from apps.benchmarks.models import QueryResult, Run
from apps.datasets.models import DatasetVersion
from apps.mappings.models import Mapping
from apps.mappings.truth import truth
from benchbench.ir.judging.pool import Pool

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RunRankings:
    """The first documents of each query that a run answered: {query id: (document ids, chunk ids)}, best first.

    The chunks are those that brought the documents; an external run has none, and an empty array.
    """

    run_id: UUID
    of_queries: dict[int, tuple[IntArray, IntArray]]


def read_rankings(runs: Sequence[Run], depth: int) -> list[RunRankings]:
    """Return the first `depth` documents of each ranking of each run; of several repetitions the first."""
    return [RunRankings(run.pk, _first(run, depth)) for run in runs]


def _first(run: Run, depth: int) -> dict[int, tuple[IntArray, IntArray]]:
    rows = QueryResult.objects.filter(run=run, error="").order_by("query_id", "repetition")
    heads = (f"document_ids__0_{depth}", f"chunk_ids__0_{depth}")
    first: dict[int, tuple[IntArray, IntArray]] = {}
    for query_id, documents, chunks in rows_of(rows.values_list("query_id", *heads)):
        if query_id not in first:
            first[query_id] = np.array(documents, np.int64), np.array(chunks or [], np.int64)
    return first


def known_grades(mapping: Mapping, version: DatasetVersion) -> dict[int, dict[int, int]]:
    """Return the grades of a version as the mapping resolved them: {query id: {document id: grade}}."""
    return truth(mapping, version).grades


def pool_of(rankings: Sequence[RunRankings], query_ids: Sequence[int], depth: int) -> Pool:
    """Return the pool of the first `depth` documents of each ranking; its queries are `query_ids`, in their order.

    Without a ranking, as of a round whose runs were deleted, it is empty.
    """
    by_run = [
        [run.of_queries[query][0].tolist() if query in run.of_queries else None for query in query_ids]
        for run in rankings
    ]
    return Pool.of(by_run or [[None] * len(query_ids)], depth=depth)


def passages_of(rankings: Sequence[RunRankings]) -> dict[tuple[int, int], int]:
    """Return the chunk that brought each document of each query, of the ranking that has it highest.

    {(query id, document id): chunk id}, without documents that no chunk brought, as of external runs.
    """
    best: dict[tuple[int, int], tuple[int, int]] = {}
    for run in rankings:
        for query_id, (documents, chunks) in run.of_queries.items():
            for rank, (document, chunk) in enumerate(zip(documents.tolist(), chunks.tolist(), strict=False)):
                pair = query_id, document
                if pair not in best or rank < best[pair][0]:
                    best[pair] = rank, chunk
    return {pair: chunk for pair, (_, chunk) in best.items()}
