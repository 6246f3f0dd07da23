"""Judging a document where it is seen: in a collection, by whatever reference the dataset has for it."""

from collections import defaultdict
from typing import Any

from django.db import transaction

from apps.collections.models import Collection, Document
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments
from apps.datasets.finding import find_version
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import JudgmentRecord
from apps.mappings.models import Mapping
from apps.mappings.references.rules import resolve_reference
from apps.mappings.resolving import load_catalogue
from benchbench.database.rereading import read_again
from benchbench.errors import ConflictError


class JudgingError(ConflictError):
    """The document cannot be judged for that query."""

    code = "cannot_judge"


def stated_for(mapping: Mapping, version: DatasetVersion, query: Query) -> dict[int, list[Judgment]]:
    """Return the judgments of `query` in `version`, a draft too, by the id of the document that each means now.

    Resolved here, because a draft has no resolutions. Costs at most six queries, whatever the number of judgments.
    """
    judgments = list(version.judgments.filter(query=query).order_by("id"))
    catalogue = load_catalogue(mapping.collection, (judgment.doc_ref for judgment in judgments))
    by_document: dict[int, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        document_id = resolve_reference(judgment.doc_ref, catalogue).document_id
        if document_id is not None:
            by_document[document_id].append(judgment)
    return dict(by_document)


@transaction.atomic
def judge_document(
    mapping: Mapping, query: Query, document: Document, grade: int, *, by: Any, note: str = ""
) -> Judgment:
    """State in the draft that `document` has `grade` for `query`, judged by the user `by`; return the judgment.

    The reference is the one that the dataset has for the document, else its id. Where several references mean the
    document only one stays: of several grades the highest would count, not the one that is stated here.
    """
    judgments = _stated(mapping, query, document)
    first = judgments[0] if judgments else None
    record = JudgmentRecord(
        first.doc_ref if first else {"document_id": document.external_id},
        grade,
        first.section_refs if first else None,
        Judgment.Source.HUMAN,
        judge=by.get_username(),
        note=note,
    )
    edits = [JudgmentEdit(query.key, record.doc_ref, record), *_removed(query, judgments[1:])]
    judgment = edit_judgments(mapping.dataset, edits, judged_by=by).judgments[0]
    assert judgment is not None
    return judgment


@transaction.atomic
def unjudge_document(mapping: Mapping, query: Query, document: Document) -> None:
    """Take every judgment of `document` for `query` out of the draft."""
    judgments = _stated(mapping, query, document)
    if not judgments:
        raise JudgingError(f'"{document}" has no judgment for {query.key!a}: there is nothing to remove.')
    edit_judgments(mapping.dataset, _removed(query, judgments))


def documents_meant(dataset: Dataset, doc_ref: dict[str, Any]) -> list[tuple[Mapping, Document]]:
    """Return the document that a reference means in each mapping of the dataset to documents that has it."""
    meant = []
    for mapping in _mappings_to_documents(dataset):
        document_id = resolve_reference(doc_ref, load_catalogue(mapping.collection, [doc_ref])).document_id
        if document_id is not None:
            meant.append((mapping, read_again(Document.objects.all(), document_id)))
    return meant


def require_document(dataset: Dataset, doc_ref: dict[str, Any]) -> None:
    """Raise JudgingError where the dataset is mapped to collections of documents and none has the one that is meant.

    Such a judgment would count as a document that nothing can find. Of a dataset without such a mapping nothing can be
    said.
    """
    collections = {mapping.collection for mapping in _mappings_to_documents(dataset)}
    if collections and not documents_meant(dataset, doc_ref):
        (key, value), *_ = doc_ref.items()
        several = f"the {len(collections)} collections of the dataset"
        where = several if len(collections) > 1 else f'"{collections.pop()}"'
        raise JudgingError(
            f"No document of {where} has the {key.replace('_', ' ')} {value[:100]!a}: correct it, or state the "
            "judgment without a document.",
            field="reference",
        )


def _mappings_to_documents(dataset: Dataset) -> list[Mapping]:
    rows = Mapping.objects.filter(dataset=dataset).exclude(collection__kind=Collection.Kind.EXTERNAL)
    return list(rows.select_related("dataset", "collection").order_by("collection__name", "pk"))


def _removed(query: Query, judgments: list[Judgment]) -> list[JudgmentEdit]:
    return [JudgmentEdit(query.key, judgment.doc_ref, None) for judgment in judgments]


def _stated(mapping: Mapping, query: Query, document: Document) -> list[Judgment]:
    """Return the judgments of `document` as the dataset has them now; raise for what nobody can judge."""
    read_again(Dataset.objects.select_for_update(), mapping.dataset_id)
    version = find_version(mapping.dataset, edited=True)
    if not version.queries.filter(pk=query.pk).exists():
        raise JudgingError(
            f"The query {query.key!a} was reworded or removed since: judge it as {version.dataset} has it now."
        )
    if document.removed_at is not None:
        raise JudgingError(f'"{document}" was removed from the collection: a judgment could not be resolved to it.')
    return stated_for(mapping, version, query).get(document.pk, [])
