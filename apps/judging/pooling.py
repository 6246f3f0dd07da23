"""Pools: what some runs returned first and nobody judged, each pair once."""

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

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RunRankings:
    """The first documents of each query that a run answered: {query id: (document ids, chunk ids)}, best first.

    The chunks are those that brought the documents; an external run has none, and an empty array.
    """

    run_id: UUID
    of_queries: dict[int, tuple[IntArray, IntArray]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A document that is not judged for a query, with its best rank in any run, from 1, and the chunk that had it."""

    query_id: int
    document_id: int
    rank: int
    chunk_id: int | None


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


def pool_of(rankings: Sequence[RunRankings], known: dict[int, dict[int, int]], depth: int) -> list[Pair]:
    """Return the pairs among the first `depth` of any ranking that are not `known`, by query id and rank.

    A query that is not in `known`, as it is not of the version, has none.
    """
    best: dict[tuple[int, int], tuple[int, int | None]] = {}
    for run in rankings:
        for query_id, (documents, chunks) in run.of_queries.items():
            judged = known.get(query_id)
            if judged is None:
                continue
            for place, document_id in enumerate(documents[:depth].tolist()):
                if document_id in judged:
                    continue
                pair = (query_id, document_id)
                if pair not in best or place + 1 < best[pair][0]:
                    best[pair] = place + 1, int(chunks[place]) if place < len(chunks) else None
    pairs = [Pair(*pair, *found) for pair, found in best.items()]
    return sorted(pairs, key=lambda pair: (pair.query_id, pair.rank, pair.document_id))
