"""Triage of a run: the relevant documents that are not among its first k, with the cause."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.core.cache import cache
from django.db.models import Case, DateTimeField, Exists, F, JSONField, OuterRef, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from apps.collections.models import FormerDocument
from apps.collections.states import filter_former
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings.models import Resolution
from apps.mappings.truth import (
    FIELDS,
    Truth,
    Unresolved,
    build_truth,
    duplicates_of,
    hash_truth,
    list_resolutions,
)
from apps.records.lists.reading import Lists, build_stored_plan, list_keys, stream_document_lists
from apps.records.measuring.evaluating import get_truth_policies
from apps.records.models import Evaluation, Run
from apps.results.triage.windows import list_beyond_window
from apps.retrieval.filters import bound_places, excludes, find_place
from apps.retrieval.models import Chunk
from benchbench.ir.measures import SharedGrades, count_once, name_texts
from benchbench.ir.planning.plan import RunPlan
from benchbench.ir.triage import Loss, LostDocument, Relevant, Tally, triage

KEPT_SECONDS = 7 * 24 * 3600


Reasons = Mapping[tuple[int, int], Loss]  # by query id and key of a truth: document or Unresolved
REASON_FIELDS = ("outcome", "lost_at", "is_indexed", "is_filtered", "is_self", "unresolved_ref")


@dataclass(frozen=True, slots=True, eq=False)
class JudgmentSet:
    """The truth for a run, the reasons why documents could not be found, and names for both.

    `texts` has those of the queries by id; `references` the names of documents in unresolved judgments, by key.
    """

    truth: Truth
    reasons: Reasons
    texts: Mapping[int, str]
    references: Mapping[int, str]

    def find_external_id(self, key: int) -> str | None:
        """Return the external id of a document; None for a judgment without one."""
        return None if isinstance(key, Unresolved) else self.truth.names[key].removeprefix("document ")

    def list_relevant(self, query_id: int) -> list[Relevant]:
        return list_relevant(query_id, self.truth.grades[query_id], self.reasons)


def load_judgments(run: Run, version: DatasetVersion, *, query_ids: Collection[int] | None = None) -> JudgmentSet:
    """Return the judgments of `version`, or of some of its queries. Two queries. Raises TruthError."""
    queries = version.queries if query_ids is None else version.queries.filter(pk__in=query_ids)
    query_rows = list(queries.values_list("pk", "key", "text"))
    benchmark = run.benchmark
    resolutions = list_resolutions(benchmark.mapping, version, state=benchmark.state, query_ids=query_ids)
    rows = list(_join_reasons(run, resolutions))
    truth = build_truth(
        (row[: len(FIELDS)] for row in rows),
        {pk: key for pk, key, _ in query_rows},
        policies=get_truth_policies(benchmark),
        duplicates=duplicates_of(benchmark.mapping, benchmark.state),
    )
    references: dict[int, str] = {
        Unresolved.from_judgment(row[1]): Judgment(doc_ref=row[-1]).reference for row in rows if row[2] is None
    }
    texts = {pk: text for pk, _, text in query_rows}
    reasons = list_beyond_window(run, rows, texts) | dict(_read_reasons(rows, run.configuration.filter_share))
    return JudgmentSet(truth, reasons, texts, references)


def load_reasons(run: Run, query_id: int) -> Reasons:
    """Return the reasons why judged documents of a query, in any version, could not be found."""
    resolved = Resolution.objects.at(run.benchmark.state)
    mine = resolved.filter(mapping=run.benchmark.mapping_id, judgment__query=query_id).order_by()
    rows, texts = list(_join_reasons(run, mine)), dict(Query.objects.filter(pk=query_id).values_list("pk", "text"))
    return list_beyond_window(run, rows, texts) | dict(_read_reasons(rows, run.configuration.filter_share))


def list_relevant(query_id: int, grades: Mapping[int, int], reasons: Reasons) -> list[Relevant]:
    """Return the relevant judgments of a query, each with the reason if no search could find its document.

    The collection may lack the document, or have lost it before indexing. The reference may be unresolved, the index
    may have no chunk of it, or a filter, the query's own or that of the run, may exclude it.
    """
    return [
        Relevant(key, grade, reasons.get((query_id, key))) for key, grade in count_once(grades).items() if grade > 0
    ]


def rename_lists(grades: Mapping[int, int], lists: Lists) -> Lists:
    """Return a query's lists of documents, in which the first of identical texts has the id of the judged one."""
    if not isinstance(grades, SharedGrades):
        return lists
    names = {key: np.array(name_texts(grades, one.ids.tolist()), np.int64) for key, one in lists.items()}
    return {key: replace(one, ids=names[key]) for key, one in lists.items()}


def _join_reasons(run: Run, judgments: QuerySet[Resolution]) -> QuerySet[Resolution, tuple[Any, ...]]:
    """Return rows of FIELDS and REASON_FIELDS; a deleted index counts as having had every document."""
    leaves = Chunk.objects.filter(level=0, document=OuterRef("document"))
    chunks = leaves.filter(chunk_set=run.index.chunk_set_id) if run.index else None
    has_key = When(document__external_id=F("judgment__query__key"), then=Value(run.benchmark.exclude_self))
    annotated = judgments.annotate(
        is_indexed=Value(True) if chunks is None else Exists(chunks),
        metadata=_select_metadata(run.benchmark.state),
        lost_at=F("document__removed_at") if run.benchmark.state is None else Value(None, DateTimeField()),
        is_filtered=excludes("judgment__query__filters", "metadata"),
        is_self=Case(has_key, default=Value(False)),
        unresolved_ref=Case(When(document=None, then=F("judgment__doc_ref")), output_field=JSONField()),
    )
    return annotated.values_list(*FIELDS, *REASON_FIELDS)


def _select_metadata(state: int | None) -> Any:
    """Return the expression for the metadata of a resolved document, as they were in a state of the collection."""
    if state is None:
        return F("document__metadata")
    former = FormerDocument.objects.filter(filter_former(state), document=OuterRef("document"))
    return Coalesce(Subquery(former.values("metadata")), F("document__metadata"))


def _read_reasons(rows: Any, share: float | None) -> Iterator[tuple[tuple[int, int], Loss]]:
    for row in rows:
        query_id, judgment_id, document_id, _, external_id, *_, outcome, removed_at, is_indexed = row[:-3]
        is_filtered, is_self, _ = row[-3:]
        if document_id is None:
            is_missing = outcome == Resolution.Outcome.NOT_FOUND
            yield (
                (query_id, Unresolved.from_judgment(judgment_id)),
                Loss.NOT_IN_COLLECTION if is_missing else Loss.UNRESOLVED,
            )
        elif not is_indexed:  # it was removed, was added later, or has no text
            yield (query_id, document_id), Loss.NOT_IN_COLLECTION if removed_at else Loss.NOT_INDEXED
        elif is_self:
            yield (query_id, document_id), Loss.EXCLUDED_SELF
        elif is_filtered or (share is not None and find_place(external_id) >= bound_places(share)):
            yield (query_id, document_id), Loss.FILTERED


@dataclass(frozen=True, slots=True)
class QueryLoss:
    """The losses of one query: the number of relevant documents, and the causes, the most costly first.

    `counts` has the number of lost documents for each cause.
    """

    lost: int
    relevant: int
    causes: tuple[Loss, ...]
    counts: tuple[int, ...]

    @property
    def main(self) -> Loss:
        return self.causes[0]

    def count(self, cause: Loss | None = None) -> int:
        """Return the number of lost documents, by `cause` or by any."""
        return sum(count for loss, count in zip(self.causes, self.counts, strict=True) if cause in (None, loss))


@dataclass(frozen=True, slots=True)
class RunLosses:
    """The losses of a run: `tally` by cause, `queries` by id for those that lost a document.

    `judged` are the queries with relevant documents. `untraced` counts those whose stage lists are not stored.
    `is_current`: the judgments are those with which the run was measured.
    """

    tally: dict[Loss, Tally]
    queries: dict[int, QueryLoss]
    judged: frozenset[int]
    untraced: int = 0
    is_current: bool = True


def list_lost_documents(
    run: Run, plan: RunPlan, judged: JudgmentSet, *, k: int, query_ids: Collection[int] | None = None
) -> Iterator[tuple[int, list[LostDocument] | None]]:
    """Yield judged queries, or those of `query_ids`, with the relevant documents outside the run's first `k`.

    One database query, during which no other can run. Leave out failed queries. The documents are None if some lists of
    a query are not stored; a query without any stored list is left out.
    """
    keys = list_keys(plan)
    for query_id, lists in stream_document_lists(run.benchmark, [*keys, *plan.exact_keys], query_ids=query_ids):
        if query_id in judged.truth.grades:
            is_complete = lists.keys() >= {*keys}
            renamed = rename_lists(judged.truth.grades[query_id], lists)
            yield query_id, triage(plan, renamed, judged.list_relevant(query_id), k=k) if is_complete else None


def load_losses(run: Run, evaluation: Evaluation) -> RunLosses | None:
    """Return the losses of a run at primary_k, by the judgments of one of its evaluations.

    None for an external run, whose stages are unknown, and if its rankings were deleted. The result is cached until the
    judgments, the run or the documents of the collection change.
    """
    plan = build_stored_plan(run)
    return None if plan is None or run.benchmark.rankings_deleted_at else trace_losses(plan, run, evaluation)[0]


def trace_losses(plan: RunPlan, run: Run, evaluation: Evaluation) -> tuple[RunLosses, JudgmentSet | None]:
    """Return the losses of a run with known stages, and the judgments if they had to be read."""
    key, judged = _cache_key(run, evaluation), None
    losses: RunLosses | None = cache.get(key)
    if losses is None:
        judged = load_judgments(run, evaluation.dataset_version)
        losses = _build_losses(run, evaluation, plan, judged)
        cache.set(key, losses, KEPT_SECONDS)
    return losses, judged


def _cache_key(run: Run, evaluation: Evaluation) -> str:
    mapping = run.benchmark.mapping
    moments = [moment.timestamp() if moment else 0 for moment in (run.completed_at, mapping.resolved_at)]
    states = (evaluation.truth_hash[:16], mapping.collection.fingerprint[:16])
    return ":".join(map(str, ("lost", evaluation.pk, *states, *moments)))


def _build_losses(run: Run, evaluation: Evaluation, plan: RunPlan, judged: JudgmentSet) -> RunLosses:
    traced = dict(list_lost_documents(run, plan, judged, k=run.benchmark.primary_k))
    queries: dict[int, QueryLoss] = {}
    with_relevant = set()
    untraced = 0
    for query in list_answered(evaluation):
        grades, lost = count_once(judged.truth.grades.get(query, {})), traced.get(query)
        relevant = sum(grade > 0 for grade in grades.values())
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
    is_current = evaluation.truth_hash in ("", hash_truth(judged.truth))
    return RunLosses(tally, queries, frozenset(with_relevant), untraced, is_current)


def _query_loss(lost: Sequence[LostDocument], relevant: int) -> QueryLoss:
    counts, shares = Counter(document.loss for document in lost), dict.fromkeys(Loss, 0.0)
    for document in lost:
        shares[document.loss] += document.share
    in_order = [cause for cause in Loss if counts[cause]]
    causes = sorted(in_order, key=lambda cause: (shares[cause], counts[cause]), reverse=True)
    return QueryLoss(len(lost), relevant, tuple(causes), tuple(counts[cause] for cause in causes))


def list_answered(evaluation: Evaluation) -> list[int]:
    """Return the queries that have values: those that were asked and did not fail."""
    first = evaluation.values[0] if evaluation.values else []
    return [query for query, value in zip(evaluation.query_ids, first, strict=False) if value is not None]
