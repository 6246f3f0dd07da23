"""Judging a document where it is seen: in a collection, by whatever reference the dataset has for it."""

from collections import defaultdict
from typing import Any

from django.db import transaction

from apps.collections.models import Document
from apps.datasets.editing.judgments import open_draft, remove_judgment, set_judgment
from apps.datasets.models import DatasetVersion, Judgment, Query
from apps.mappings.models import Mapping
from apps.mappings.references.rules import resolve_reference
from apps.mappings.resolving import load_catalogue
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
    stated: dict[int, list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        document_id = resolve_reference(judgment.doc_ref, catalogue).document_id
        if document_id is not None:
            stated[document_id].append(judgment)
    return dict(stated)


@transaction.atomic
def judge_document(
    mapping: Mapping, query: Query, document: Document, grade: int, *, by: Any, note: str = ""
) -> Judgment:
    """State in the draft that `document` has `grade` for `query`, judged by the user `by`; return the judgment.

    The reference is the one that the dataset has for the document, else its id. Where several references mean the
    document only one stays: of several grades the highest would count, not the one that is stated here.
    """
    draft = open_draft(mapping.dataset)
    _require(draft, query, document)
    stated = stated_for(mapping, draft, query).get(document.pk, [])
    first = stated[0] if stated else None
    for other in stated[1:]:
        remove_judgment(mapping.dataset, query.key, other.doc_ref)
    return set_judgment(
        mapping.dataset,
        query.key,
        first.doc_ref if first else {"document_id": document.external_id},
        grade,
        judge=by.get_username(),
        judged_by=by,
        note=note,
        section_refs=first.section_refs if first else None,
    )


@transaction.atomic
def unjudge_document(mapping: Mapping, query: Query, document: Document) -> None:
    """Take every judgment of `document` for `query` out of the draft."""
    draft = open_draft(mapping.dataset)
    _require(draft, query, document)
    stated = stated_for(mapping, draft, query).get(document.pk, [])
    if not stated:
        raise JudgingError(f'"{document}" has no judgment for {query.key!a}: there is nothing to remove.')
    for judgment in stated:
        remove_judgment(mapping.dataset, query.key, judgment.doc_ref)


def _require(draft: DatasetVersion, query: Query, document: Document) -> None:
    if not draft.queries.filter(pk=query.pk).exists():
        raise JudgingError(
            f"The query {query.key!a} was worded anew or removed since: judge it as {draft.dataset} has it now."
        )
    if document.removed_at is not None:
        raise JudgingError(f'"{document}" was removed from the collection: a judgment could not be resolved to it.')
