"""Editing judgments: changes gather in a draft, which freezing makes the next version, and discarding undoes."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.datasets.content import judgment_content, ref_hash, stored_hash
from apps.datasets.editing.drafts import difference_of
from apps.datasets.editing.versions import judgment_row
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import GRADES, DatasetError, JudgmentRecord, doc_ref_fault
from benchbench.errors import ConflictError


@transaction.atomic
def open_draft(dataset: Dataset) -> DatasetVersion:
    """Return the draft of a dataset; without one, a new one that holds what the newest version holds."""
    locked = Dataset.objects.select_for_update().get(pk=dataset.pk)
    newest = locked.versions.order_by("-number").first()
    if newest and newest.frozen_at is None:
        return newest
    return DatasetVersion.objects.create(dataset=locked, number=newest.number + 1 if newest else 1)


@transaction.atomic
def set_judgment(
    dataset: Dataset,
    query_key: str,
    doc_ref: dict[str, Any],
    grade: int,
    *,
    judge: str = "",
    source: str = Judgment.Source.HUMAN,
    judged_by: Any = None,
    note: str = "",
    section_refs: list[str] | None = None,
) -> Judgment:
    """State in the draft what grade a document has for a query, in place of what was stated before; return the row."""
    if found := doc_ref_fault(doc_ref):
        raise DatasetError(f"The reference to the document {found}.", field="doc_ref")
    if grade not in GRADES:
        raise DatasetError(f"The grade {grade} is out of range.", field="grade")
    draft = open_draft(dataset)
    query = _query(draft, query_key)
    record = JudgmentRecord(doc_ref, grade, section_refs, source, judge, note)
    row = judgment_row(draft, query, record)
    row.judged_by = judged_by
    before = query.judgments.filter(ref_hash=row.ref_hash, until__isnull=True).first()
    if before and states_the_same(before, record, judged_by):
        return before
    if before and before.since == draft.number:
        row.pk, row.created_at = before.pk, before.created_at
    elif before:
        _end(before, draft)
    row.save()
    return row


def states_the_same(judgment: Judgment, record: JudgmentRecord, judged_by: Any) -> bool:
    """Whether `judgment` says already what `record` does, by the same user."""
    who = getattr(judged_by, "pk", None)
    return judgment_content(judgment) == judgment_content(record) and judgment.judged_by_id == who


@transaction.atomic
def remove_judgment(dataset: Dataset, query_key: str, doc_ref: dict[str, Any]) -> None:
    """Take the judgment of a reference out of the draft, so that nobody judged it; frozen versions keep theirs."""
    draft = open_draft(dataset)
    query = _query(draft, query_key)
    judgment = query.judgments.filter(ref_hash=ref_hash(doc_ref), until__isnull=True).first()
    if judgment is None:
        raise DatasetError(
            f'The query {query_key!a} of "{dataset}" has no judgment of that document: there is nothing to remove.',
            field="doc_ref",
        )
    _end(judgment, draft)


@transaction.atomic
def freeze(dataset: Dataset, *, label: str = "", note: str = "", seen: str = "") -> DatasetVersion:
    """Freeze the draft and return it: a numbered version that never changes again.

    `seen` is the digest of the difference that somebody looked at: a draft that was edited since is refused.
    """
    Dataset.objects.select_for_update().get(pk=dataset.pk)
    draft = dataset.versions.filter(frozen_at__isnull=True).first()
    if draft is None:
        raise ConflictError(f'The dataset "{dataset}" has no draft to freeze: nothing was edited since.')
    if seen and difference_of(draft).digest != seen:
        raise ConflictError("The draft was edited since you looked at it: see what it changes now, and freeze that.")
    if label and dataset.versions.filter(label=label).exists():
        raise ConflictError(f'The dataset "{dataset}" has a version "{label}": choose another label.', field="label")
    draft.label = label
    draft.note = note
    draft.query_count = draft.queries.count()
    if not draft.query_count:
        raise ConflictError(f'The draft of "{dataset}" has no query left: add one, or discard the draft.')
    draft.judgment_count = draft.judgments.count()
    draft.content_hash = stored_hash(draft)
    draft.frozen_at = timezone.now()
    draft.save()
    return draft


@transaction.atomic
def discard_draft(dataset: Dataset) -> None:
    """Undo every edit since the newest frozen version, which is the newest again. There is no way back."""
    locked = Dataset.objects.select_for_update().get(pk=dataset.pk)
    draft = locked.versions.filter(frozen_at__isnull=True).first()
    if draft is None:
        raise ConflictError(f'The dataset "{dataset}" has no draft to discard: nothing was edited since.')
    judgments = Judgment.objects.filter(query__dataset=locked)
    queries = Query.objects.filter(dataset=locked)
    for rows in (judgments, queries):  # what began goes first: no two current rows may speak of the same
        rows.filter(since=draft.number).delete()
    for rows in (queries, judgments):
        rows.filter(until=draft.number).update(until=None)
    draft.delete()


def _query(draft: DatasetVersion, key: str) -> Query:
    query = draft.queries.filter(key=key).first()
    if query is None:
        raise DatasetError(f'The dataset "{draft.dataset}" has no query {key!a}.', field="query_key")
    return query


def _end(judgment: Judgment, draft: DatasetVersion) -> None:
    """Take a judgment out of the draft: no frozen version loses it, and one that only the draft had goes."""
    if judgment.since == draft.number:
        judgment.delete()
    else:
        judgment.until = draft.number
        judgment.save(update_fields=["until"])
