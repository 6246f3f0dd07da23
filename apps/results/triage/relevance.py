"""Relevant documents of queries, and those of them that no search of an index could find."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, Exists, F, JSONField, OuterRef, QuerySet, Value, When

from apps.benchmarks.measuring.evaluating import policy_of
from apps.benchmarks.models import Run
from apps.datasets.models import DatasetVersion, Judgment
from apps.mappings.models import Resolution
from apps.mappings.truth import FIELDS, Truth, Unresolved, judgments_of, truths_in
from apps.retrieval.filters import keeps_out
from apps.retrieval.models import Chunk
from benchbench.ir.triage import Loss, Relevant

Reasons = Mapping[tuple[int, int], Loss]  # by query id and key of a truth: document or Unresolved
TOLD = ("outcome", "document__removed_at", "is_indexed", "is_kept_out", "stated")


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The truth that a run is held against, why no search could find what it could not, and what both are called.

    `texts` has those of the queries by id; `references` how an unresolved judgment names its document, by its key.
    """

    truth: Truth
    reasons: Reasons
    texts: Mapping[int, str]
    references: Mapping[int, str]

    def external_id(self, key: int) -> str | None:
        """Return what a document is called; None for a judgment without one."""
        return None if isinstance(key, Unresolved) else self.truth.names[key].removeprefix("document ")

    def relevant(self, query_id: int) -> list[Relevant]:
        return relevant_of(query_id, self.truth.grades[query_id], self.reasons)


def judged_of(run: Run, version: DatasetVersion, *, query_ids: Collection[int] | None = None) -> Judged:
    """Return what is judged of `version`, or of some of its queries, in two queries. Raises TruthError."""
    queries = version.queries if query_ids is None else version.queries.filter(pk__in=query_ids)
    told = list(queries.values_list("pk", "key", "text"))
    mapping = run.benchmark.mapping
    rows = list(_with_reasons(run, judgments_of([mapping], version, query_ids=query_ids)))
    (truth,) = truths_in(
        (row[: len(FIELDS)] for row in rows),
        [mapping],
        {pk: key for pk, key, _ in told},
        unresolved=policy_of(run.benchmark),
    )
    references: dict[int, str] = {
        Unresolved.of(row[2]): Judgment(doc_ref=row[-1]).reference for row in rows if row[3] is None
    }
    return Judged(truth, dict(_reasons(rows)), {pk: text for pk, _, text in told}, references)


def reasons_of(run: Run, query_id: int) -> Reasons:
    """Return why no search could find what is judged for a query, in any version, in one query."""
    mine = Resolution.objects.filter(mapping=run.benchmark.mapping_id, judgment__query=query_id).order_by()
    return dict(_reasons(_with_reasons(run, mine)))


def relevant_of(query_id: int, grades: Mapping[int, int], reasons: Reasons) -> list[Relevant]:
    """Return the relevant judgments of a query, each with why no search of the index could find its document.

    That is: the collection has no such document, or lost it before it was indexed; the reference was not resolved to
    one; the index has no chunk of it; or the query's own filter excludes it.
    """
    return [Relevant(key, grade, reasons.get((query_id, key))) for key, grade in grades.items() if grade > 0]


def _with_reasons(run: Run, judgments: QuerySet[Resolution]) -> QuerySet[Resolution, tuple[Any, ...]]:
    """Return rows of FIELDS and TOLD; an index that is not there any more is taken to have had every document."""
    leaves = Chunk.objects.filter(level=0, document=OuterRef("document"))
    chunks = leaves.filter(chunk_set=run.index.chunk_set_id) if run.index else None
    annotated = judgments.annotate(
        is_indexed=Value(True) if chunks is None else Exists(chunks),
        is_kept_out=keeps_out("judgment__query__filters", "document__metadata"),
        stated=Case(When(document=None, then=F("judgment__doc_ref")), output_field=JSONField()),
    )
    return annotated.values_list(*FIELDS, *TOLD)


def _reasons(rows: Any) -> Iterator[tuple[tuple[int, int], Loss]]:
    for _, query_id, judgment_id, document_id, *_, outcome, removed_at, is_indexed, is_kept_out, _ in rows:
        if document_id is None:
            is_missing = outcome == Resolution.Outcome.NOT_FOUND
            yield (query_id, Unresolved.of(judgment_id)), Loss.NOT_IN_COLLECTION if is_missing else Loss.UNRESOLVED
        elif not is_indexed:  # it was removed, or came later, or has no text
            yield (query_id, document_id), Loss.NOT_IN_COLLECTION if removed_at else Loss.NOT_INDEXED
        elif is_kept_out:
            yield (query_id, document_id), Loss.FILTERED
