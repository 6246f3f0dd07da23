"""Triage of a lost document: its rank and score after every stage, and the stage that dropped it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.measures import Values
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.planning.stages import (
    DenseStage,
    FuseStage,
    LocateStage,
    MergeStage,
    RerankStage,
    Search,
    Searching,
)
from benchbench.ir.ranking import cut, scale_scores
from benchbench.ir.records import ScoredList

FINAL = "final"


class Loss(StrEnum):
    """Reason why a relevant document is not among the first k: the first thing that kept it out."""

    NOT_IN_COLLECTION = "not in collection"
    UNRESOLVED = "unresolved"
    NOT_INDEXED = "not indexed"
    FILTERED = "excluded by filter"
    EXCLUDED_SELF = "excluded self"
    NO_SHARED_WORD = "no shared word"
    BEYOND_WINDOW = "beyond window"
    NOT_REACHED = "not reached by strategy"
    MISSED = "missed by approximate search"
    BELOW_FIRST_STAGE = "below first-stage depth"
    BELOW_FUSED = "below fused depth"
    BELOW_RERANK_DEPTH = "below rerank depth"
    CUT_BY_THRESHOLD = "cut by threshold"
    DEMOTED_BY_RERANKER = "demoted by reranker"
    CUT_BY_TOP_K = "cut by top_k"
    BELOW_K = "below k"


RANKED_LOW = frozenset({Loss.BELOW_FIRST_STAGE, Loss.BELOW_FUSED, Loss.BELOW_K})


@dataclass(frozen=True, slots=True)
class Relevant:
    """A relevant judgment of the query.

    `unreachable` is why no search of this index can find its document. BEYOND_WINDOW is why one by vectors ranks it
    low.
    """

    document: int
    grade: float
    unreachable: Loss | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A document's rank among documents and its best chunk's score after a stage; None if the list lacks it.

    `is_read` is false if its rank in the stored list is below the depth that the run reads.
    """

    stage: str
    rank: int | None = None
    score: float | None = None
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class LostDocument:
    document: int
    grade: float
    loss: Loss
    standings: tuple[Standing, ...]
    share: float  # its part of the ideal DCG@k at its rank in the ideal ranking; 0 past rank k there


def triage(
    run: RunPlan,
    lists: Mapping[str, ScoredList],
    relevant: Sequence[Relevant],
    *,
    k: int,
) -> list[LostDocument]:
    """Return the relevant documents of one query that are not among the run's first k, the highest grade first.

    `lists` are the query's stored lists by stage key, best first, with the document of each chunk in place of the
    chunk; a reranked list has its `threshold_scores` if the run has a threshold. Raises KeyError for a missing list: a
    failed query cannot be triaged. Only with the lists of the run's `exact_keys` is a document `MISSED`.
    """
    trace = _Trace.from_lists(run, lists)
    ordered = sorted(relevant, key=lambda document: (-document.grade, document.document))
    gains = [
        document.grade / math.log2(rank + 1) if rank <= k else 0.0 for rank, document in enumerate(ordered, start=1)
    ]
    ideal = sum(gains)
    lost = []
    for document, gain in zip(ordered, gains, strict=True):
        if not _is_within(trace.find_final(document.document), k):
            standings = trace.find_standings(document.document)
            loss = document.unreachable
            if loss in (None, Loss.BEYOND_WINDOW):
                stage_loss = _find_loss(run, trace, standings, document.document, k)
                loss = loss if loss and stage_loss in RANKED_LOW else stage_loss
            share = gain / ideal if ideal else 0.0
            lost.append(LostDocument(document.document, document.grade, loss, tuple(standings.values()), share))
    return lost


def find_standings(
    run: RunPlan, lists: Mapping[str, ScoredList], targets: Iterable[int]
) -> dict[int, tuple[Standing, ...]]:
    """Return the standing of each of the documents `targets`, found or lost, after every stage of one query.

    Parameters and errors are those of `triage`.
    """
    trace = _Trace.from_lists(run, lists)
    return {document: tuple(trace.find_standings(document).values()) for document in targets}


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of documents that a run lost in one way, and of the queries they belong to."""

    documents: int
    queries: int


def tally(losses: Iterable[Sequence[LostDocument]]) -> dict[Loss, Tally]:
    """Count the losses of a run's queries: {demoted by reranker: 40 documents, 31 queries}, without zero counts."""
    of_documents, of_queries = Counter[Loss](), Counter[Loss]()
    for lost in losses:
        of_documents.update(document.loss for document in lost)
        of_queries.update({document.loss for document in lost})
    return {loss: Tally(of_documents[loss], of_queries[loss]) for loss in Loss if of_documents[loss]}


def by_loss(ndcg: Values, has_relevant: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the indices of the queries, the greatest loss first: the ideal gain that the ranking misses, 1 − nDCG@k.

    Both are (q,). Queries without relevant documents and failed ones (NaN) are left out. Equal losses stay in the
    order of the queries.
    """
    loss = np.where(has_relevant, 1.0 - ndcg, 0.0)
    return _order_falling(np.where(loss > 0, loss, np.nan))


def by_difference(first: Values, second: Values) -> NDArray[np.int64]:
    """Return the indices of the queries by falling gap between two runs' values (q,); failed ones (NaN) left out."""
    return _order_falling(np.abs(first - second))


def _find_standing(stage: str, ranked: ScoredList, read: int, document: int) -> Standing:
    """Return the standing of a document in a list of which the run reads the first `read` entries."""
    places = np.flatnonzero(ranked.ids == document)
    if not len(places):
        return Standing(stage)
    first = int(places[0])
    return Standing(stage, len(np.unique(ranked.ids[:first])) + 1, float(ranked.scores[first]), first < read)


@dataclass(frozen=True, slots=True, eq=False)
class _Trace:
    """One query's lists of documents: after each stage, those that `passed` the threshold, and what the run returns."""

    run: RunPlan
    stages: dict[str, ScoredList]
    passed: ScoredList
    final: ScoredList
    exhausted: Loss | None  # why no search would have found more had it been asked for more; None where one would have
    nearest: frozenset[int]  # the documents that exact search has within the depth of an approximate one

    @classmethod
    def from_lists(cls, run: RunPlan, lists: Mapping[str, ScoredList]) -> _Trace:
        stages = {stage.key: lists[stage.key] for stage in run.stages if isinstance(stage, Searching)}
        ranked = lists[run.final].head(run.candidates)
        unit_scores = scale_scores(run.unit_kind, ranked.compared_scores)
        passed = cut(ranked, unit_scores=unit_scores, threshold=run.threshold, top_k=len(ranked))
        first = [stage for stage in run.stages if isinstance(stage, Search)]
        ended = all(len(lists[stage.key]) < stage.depth for stage in first)
        exact = [lists[key].head(run.candidates).ids for key in run.exact_keys if key in lists]
        nearest = frozenset(document for ids in exact for document in ids.tolist())
        return cls(run, stages, passed, passed.head(run.top_k), _explain_ending(first, ended), nearest)

    def find_final(self, document: int) -> Standing:
        return _find_standing(FINAL, self.final, self.run.top_k, document)

    def find_standings(self, document: int) -> dict[str, Standing]:
        depth = self.run.candidates
        standings = {stage: _find_standing(stage, ranked, depth, document) for stage, ranked in self.stages.items()}
        return {**standings, FINAL: self.find_final(document)}


def _explain_ending(first: Sequence[Search], ended: bool) -> Loss | None:
    """Why searches that ended before their depth found no more: an exact one by vectors leaves out only what its
    strategy passes by, one by words what shares none; an approximate one or an engine may leave out anything."""
    if any(isinstance(stage, LocateStage) for stage in first):
        return None
    dense = [stage for stage in first if isinstance(stage, DenseStage)]
    if not ended or any(stage.ann != "exact" for stage in dense):
        return None
    return Loss.NOT_REACHED if dense else Loss.NO_SHARED_WORD


def _find_loss(run: RunPlan, trace: _Trace, standings: Mapping[str, Standing], document: int, k: int) -> Loss:
    """Return the first reason, in the order of the stages.

    A document that the reranker moved out of the first k is its loss, even if top_k then cut it.
    """
    first = [stage for stage in run.stages if isinstance(stage, Search)]
    fuse = next((stage for stage in reversed(run.stages) if isinstance(stage, FuseStage | MergeStage)), None)
    rerank = next((stage for stage in run.stages if isinstance(stage, RerankStage)), None)
    if not any(standings[stage.key].is_read for stage in first):
        if document in trace.nearest:
            return Loss.MISSED
        is_nowhere = all(standings[stage.key].rank is None for stage in first)
        return trace.exhausted if trace.exhausted and is_nowhere else Loss.BELOW_FIRST_STAGE
    if fuse and not standings[fuse.key].is_read:
        return Loss.BELOW_FUSED
    if rerank and not standings[rerank.key].is_read:
        return Loss.BELOW_RERANK_DEPTH
    if document not in trace.passed.ids:
        return Loss.CUT_BY_THRESHOLD
    if rerank and _is_within(standings[rerank.source], k):
        return Loss.DEMOTED_BY_RERANKER
    return Loss.CUT_BY_TOP_K if standings[FINAL].rank is None else Loss.BELOW_K


def _is_within(standing: Standing, k: int) -> bool:
    return standing.rank is not None and standing.rank <= k


def _order_falling(keys: Values) -> NDArray[np.int64]:
    order = np.argsort(-keys, kind="stable")
    return order[: np.count_nonzero(~np.isnan(keys))].astype(np.int64, copy=False)
