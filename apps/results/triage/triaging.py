"""Triage of a run: the relevant documents that are not among its first k, each with the cause."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.core.cache import cache

from apps.benchmarks.measuring.reading import list_keys, stored_plan, stream_lists
from apps.benchmarks.models import Evaluation, Run
from apps.mappings.truth import truth_hash
from apps.results.triage.relevance import Judged, judged_of
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.triage import Loss, LostDocument, Tally, triage

KEPT_SECONDS = 7 * 24 * 3600
FORM = 1  # of what is kept; another number where that changes


@dataclass(frozen=True, slots=True)
class QueryLoss:
    """What one query lost: how many of its relevant documents, and the causes, what cost most first.

    `counts` says of each cause how many documents it lost.
    """

    lost: int
    relevant: int
    causes: tuple[Loss, ...]
    counts: tuple[int, ...]

    @property
    def main(self) -> Loss:
        return self.causes[0]

    def count(self, cause: Loss | None = None) -> int:
        """Return how many documents it lost, by `cause` or by any."""
        return sum(count for loss, count in zip(self.causes, self.counts, strict=True) if cause in (None, loss))


@dataclass(frozen=True, slots=True)
class RunLosses:
    """What a run lost: `tally` by cause, `queries` by id for those that lost a document.

    `judged` are the queries for which something is relevant. `untraced` counts those whose stage lists are not kept.
    `is_current`: the judgments stand as they stood when the run was measured.
    """

    tally: dict[Loss, Tally]
    queries: dict[int, QueryLoss]
    judged: frozenset[int]
    untraced: int = 0
    is_current: bool = True


def lost_documents(
    run: Run, plan: RunPlan, judged: Judged, *, k: int, query_ids: Collection[int] | None = None
) -> Iterator[tuple[int, list[LostDocument] | None]]:
    """Yield queries with the relevant documents that the run does not have among its first `k`, in one database query.

    All that are judged, or those of `query_ids`: leave out a query that failed, which has nothing to triage. None where
    not all lists of a query are kept; one of which none is kept is not there. Nothing else can be asked meanwhile.
    """
    keys = list_keys(plan)
    for query_id, lists, documents in stream_lists(run.benchmark, keys, query_ids=query_ids):
        if query_id in judged.truth.grades:
            whole = len(lists) == len(keys)
            yield query_id, triage(plan, lists, documents, judged.relevant(query_id), k=k) if whole else None


def losses_of(run: Run, evaluation: Evaluation) -> RunLosses | None:
    """Return what a run lost at primary_k, of the judgments of one of its evaluations.

    None for an external run: its stages are not known. What is found is kept in the cache until the judgments, the
    run or the documents of the collection change; then it is found again.
    """
    plan = stored_plan(run)
    return None if plan is None else losses_by(plan, run, evaluation)[0]


def losses_by(plan: RunPlan, run: Run, evaluation: Evaluation) -> tuple[RunLosses, Judged | None]:
    """Return the same of a run whose stages are known, and the judgments where they had to be read for that."""
    key, judged = _cache_key(run, evaluation), None
    kept = cache.get(key)
    if kept is None:
        judged = judged_of(run, evaluation.dataset_version)
        kept = _Kept.of(run, evaluation, plan, judged).__dict__
        cache.set(key, kept, KEPT_SECONDS)
    return _Kept(**kept).losses(), judged


def _cache_key(run: Run, evaluation: Evaluation) -> str:
    mapping = run.benchmark.mapping
    moments = [moment.timestamp() if moment else 0 for moment in (run.completed_at, mapping.resolved_at)]
    states = (evaluation.truth_hash[:16], mapping.collection.fingerprint[:16])
    return ":".join(map(str, ("losses", FORM, evaluation.pk, *states, *moments)))


@dataclass
class _Kept:
    """What the cache keeps, in plain types: per query how much of its ideal, and how many documents, went which way."""

    judged: dict[int, int] = field(default_factory=dict)
    lost: dict[int, dict[str, tuple[float, int]]] = field(default_factory=dict)
    untraced: int = 0
    is_current: bool = True

    @classmethod
    def of(cls, run: Run, evaluation: Evaluation, plan: RunPlan, judged: Judged) -> "_Kept":
        kept = cls(is_current=not evaluation.truth_hash or truth_hash(judged.truth) == evaluation.truth_hash)
        traced = {
            query: None if documents is None else _by_cause(documents)
            for query, documents in lost_documents(run, plan, judged, k=run.benchmark.primary_k)
        }
        for query in answered(evaluation):
            relevant = sum(grade > 0 for grade in judged.truth.grades.get(query, {}).values())
            causes = traced.get(query)
            if causes is not None and relevant:
                kept.judged[query], kept.lost[query] = relevant, causes
            kept.untraced += causes is None and query in judged.truth.grades
        return kept

    def losses(self) -> RunLosses:
        documents, queries = Counter[str](), Counter[str]()
        for causes in self.lost.values():
            documents.update({cause: count for cause, (_, count) in causes.items()})
            queries.update(causes.keys())
        return RunLosses(
            {loss: Tally(documents[loss], queries[loss]) for loss in Loss if documents[loss]},
            {query: self._loss(query, causes) for query, causes in self.lost.items() if causes},
            frozenset(self.judged),
            self.untraced,
            self.is_current,
        )

    def _loss(self, query: int, causes: dict[str, tuple[float, int]]) -> QueryLoss:
        order = sorted((Loss(name) for name in causes), key=list(Loss).index)
        order.sort(key=lambda loss: causes[loss], reverse=True)
        counts = tuple(causes[loss][1] for loss in order)
        return QueryLoss(sum(counts), self.judged[query], tuple(order), counts)


def _by_cause(documents: Collection[LostDocument]) -> dict[str, tuple[float, int]]:
    causes: dict[str, tuple[float, int]] = {}
    for document in documents:
        share, count = causes.get(document.loss, (0.0, 0))
        causes[document.loss.value] = (share + document.share, count + 1)
    return causes


def answered(evaluation: Evaluation) -> list[int]:
    """Return the queries that have values: those that were asked and did not fail."""
    first: list[Any] = evaluation.values[0] if evaluation.values else []
    return [query for query, value in zip(evaluation.query_ids, first, strict=False) if value is not None]
