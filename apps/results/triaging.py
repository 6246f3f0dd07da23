"""What a run lost: the relevant documents that are not among its first k, each with what kept it out."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.core.cache import cache

from apps.benchmarks.evaluating import truth_of
from apps.benchmarks.models import Evaluation, Run
from apps.benchmarks.stage_lists import blocks, documents_of, list_keys, read_lists, stored_plan
from apps.mappings.fingerprints import truth_hash
from apps.results.relevance import Grades, relevant_of
from benchbench.ir.plan import RunPlan
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
    run: Run, plan: RunPlan, grades: Grades, *, k: int
) -> Iterator[tuple[int, list[LostDocument] | None]]:
    """Yield each query of `grades` with the relevant documents that the run does not have among its first `k`.

    A query that failed has nothing to triage: leave it out of `grades`. None where the lists of a query are not kept.
    Reads a few hundred queries at a time, in some six database queries.
    """
    keys = list_keys(plan)
    for part in blocks(plan, list(grades)):
        lists = read_lists(run.benchmark, keys, query_ids=part)
        documents = documents_of(one for of_query in lists.values() for one in of_query.values())
        relevant = relevant_of(run, {query: grades[query] for query in part}, set(documents.values()))
        for query in part:
            if len(lists.get(query, ())) < len(keys):
                yield query, None
            else:
                yield query, triage(plan, lists[query], documents, relevant[query], k=k)


def losses_of(run: Run, evaluation: Evaluation) -> RunLosses | None:
    """Return what a run lost at primary_k, of the judgments of one of its evaluations.

    None for an external run: its stages are not known. What is found is kept in the cache until the judgments, the
    run or the documents of the collection change; then it is found again.
    """
    plan = stored_plan(run)
    if plan is None:
        return None
    key = _cache_key(run, evaluation)
    kept = cache.get(key)
    if kept is None:
        kept = _Kept.found(run, evaluation, plan).__dict__
        cache.set(key, kept, KEPT_SECONDS)
    return _Kept(**kept).losses()


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
    def found(cls, run: Run, evaluation: Evaluation, plan: RunPlan) -> "_Kept":
        truth = truth_of(run.benchmark, evaluation.dataset_version)
        grades = {query: truth.grades[query] for query in answered(evaluation) if query in truth.grades}
        kept = cls(is_current=not evaluation.truth_hash or truth_hash(truth) == evaluation.truth_hash)
        for query, documents in lost_documents(run, plan, grades, k=run.benchmark.primary_k):
            relevant = sum(grade > 0 for grade in grades[query].values())
            if documents is None:
                kept.untraced += 1
            elif relevant:
                kept.judged[query] = relevant
                kept.lost[query] = _by_cause(documents)
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
    for one in documents:
        share, count = causes.get(one.loss, (0.0, 0))
        causes[one.loss.value] = (share + one.share, count + 1)
    return causes


def answered(evaluation: Evaluation) -> list[int]:
    """Return the queries that have values: those that were asked and did not fail."""
    first: list[Any] = evaluation.values[0] if evaluation.values else []
    return [query for query, value in zip(evaluation.query_ids, first, strict=False) if value is not None]
