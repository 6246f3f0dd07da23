"""Triage of a run: the relevant documents that are not among its first k, each with the cause."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.core.cache import cache

from apps.benchmarks.measuring.reading import list_keys, stored_plan, stream_lists
from apps.benchmarks.models import Evaluation, Run
from apps.mappings.truth import truth_hash
from apps.results.triage.relevance import Judged, judged_of
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.triage import Loss, LostDocument, Tally, triage

KEPT_SECONDS = 7 * 24 * 3600


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
    losses: RunLosses | None = cache.get(key)
    if losses is None:
        judged = judged_of(run, evaluation.dataset_version)
        losses = _losses(run, evaluation, plan, judged)
        cache.set(key, losses, KEPT_SECONDS)
    return losses, judged


def _cache_key(run: Run, evaluation: Evaluation) -> str:
    mapping = run.benchmark.mapping
    moments = [moment.timestamp() if moment else 0 for moment in (run.completed_at, mapping.resolved_at)]
    states = (evaluation.truth_hash[:16], mapping.collection.fingerprint[:16])
    return ":".join(map(str, ("losses", evaluation.pk, *states, *moments)))


def _losses(run: Run, evaluation: Evaluation, plan: RunPlan, judged: Judged) -> RunLosses:
    traced = dict(lost_documents(run, plan, judged, k=run.benchmark.primary_k))
    queries: dict[int, QueryLoss] = {}
    with_relevant = set()
    untraced = 0
    for query in answered(evaluation):
        relevant, lost = sum(grade > 0 for grade in judged.truth.grades.get(query, {}).values()), traced.get(query)
        untraced += lost is None and query in judged.truth.grades
        if lost is not None and relevant:
            with_relevant.add(query)
            if lost:
                queries[query] = _query_loss(lost, relevant)
    documents, with_cause = Counter[Loss](), Counter[Loss]()
    for loss in queries.values():
        documents.update(dict(zip(loss.causes, loss.counts, strict=True)))
        with_cause.update(loss.causes)
    tally = {cause: Tally(documents[cause], with_cause[cause]) for cause in Loss if documents[cause]}
    is_current = evaluation.truth_hash in ("", truth_hash(judged.truth))
    return RunLosses(tally, queries, frozenset(with_relevant), untraced, is_current)


def _query_loss(lost: Sequence[LostDocument], relevant: int) -> QueryLoss:
    counts, shares = Counter(document.loss for document in lost), dict.fromkeys(Loss, 0.0)
    for document in lost:
        shares[document.loss] += document.share
    in_order = [cause for cause in Loss if counts[cause]]
    causes = sorted(in_order, key=lambda cause: (shares[cause], counts[cause]), reverse=True)
    return QueryLoss(len(lost), relevant, tuple(causes), tuple(counts[cause] for cause in causes))


def answered(evaluation: Evaluation) -> list[int]:
    """Return the queries that have values: those that were asked and did not fail."""
    return [query for query, value in zip(evaluation.query_ids, evaluation.values[0], strict=True) if value is not None]
