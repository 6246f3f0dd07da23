"""States of a collection that were searched, and the documents in each.

A launch records the state, if it is a new one. Later imports keep what a document was in it (`FormerDocument`), so that
judgments of any dataset version find the documents that were searched. Only searched states are recorded.
"""

from collections.abc import Collection as CollectionOf
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from apps.collections.models import Collection, CollectionState, Document, FormerDocument, Section
from benchbench.database.failures import read_again
from benchbench.deleting import delete_rows

NAMES = ("uri", "content_hash", "file_name")
Span = tuple[int, int, str]  # first character, one past the last, section id


@transaction.atomic
def record_state(collection: Collection, fingerprint: str) -> CollectionState | None:
    """Return the recorded state of a collection whose documents still have this fingerprint, else None.

    An import that is storing documents ends first.
    """
    last = _find_last(collection)
    if last is None or last.fingerprint != fingerprint:
        collection = read_again(Collection.objects.select_for_update(), collection.pk)
        last = _find_last(collection)
    else:
        collection.refresh_from_db(fields=["fingerprint"])
    if collection.fingerprint != fingerprint:
        return None
    if last is not None and last.fingerprint == fingerprint:
        return last
    number = last.number + 1 if last else 1
    return CollectionState.objects.create(
        collection=collection, number=number, fingerprint=fingerprint, document_count=collection.document_count
    )


def find_next_number(collection: Collection) -> int:
    """Return the number that the state after an import would have if it were recorded."""
    last = _find_last(collection)
    return last.number + 1 if last else 1


def keep_former(documents: Iterable[Document], until: int) -> None:
    """Store what live documents of recorded states were, before they are changed or removed in the state `until`."""
    recorded = [row for row in documents if row.removed_at is None and row.since < until]
    spans = load_spans([row.pk for row in recorded])
    FormerDocument.objects.bulk_create(
        FormerDocument(
            document=row,
            since=row.since,
            until=until,
            metadata=row.metadata,
            sections=spans.get(row.pk, []),
            **{name: getattr(row, name) for name in NAMES},
        )
        for row in recorded
    )


def filter_former(state: int, prefix: str = "") -> Q:
    """Return the condition for former documents of a state, at a lookup path such as "former__"."""
    return Q(**{f"{prefix}since__lte": state, f"{prefix}until__gt": state})


def list_documents(collection: Collection, *, state: int | None = None) -> QuerySet[Document]:
    """Return the documents of a state of a collection; without one all that it ever had."""
    if state is None:
        return Document.objects.filter(collection=collection)
    former = FormerDocument.objects.filter(filter_former(state), document=OuterRef("pk"))
    stayed = Q(removed_at=None, since__lte=state)
    return Document.objects.filter(stayed | Q(Exists(former)), collection=collection)


def load_former_metadata(documents: CollectionOf[int], state: int | None) -> dict[int, Any]:
    """Return the metadata in a state of those documents that an import has changed or removed since."""
    if state is None:
        return {}
    former = FormerDocument.objects.filter(filter_former(state), document__in=documents)
    return dict(former.order_by().values_list("document_id", "metadata"))


def find_rewritten(documents: CollectionOf[int], state: int) -> set[int]:
    """Return those of the documents whose content an import has changed since a state."""
    former = FormerDocument.objects.filter(filter_former(state), document__in=documents).order_by()
    return set(former.exclude(content_hash=F("document__content_hash")).values_list("document", flat=True))


def load_spans(documents: CollectionOf[int], *, state: int | None = None) -> dict[int, Sequence[Span]]:
    """Return the spans of the sections of documents, in order, as they were in a state; by default today's."""
    spans: dict[int, list[Span]] = {}
    rows = Section.objects.filter(document__in=documents).order_by("document_id", "ordinal")
    for document, start, end, name in rows.values_list("document_id", "start", "end", "section_id"):
        spans.setdefault(document, []).append((start, end, name))
    if state is None:
        return dict(spans)
    former = FormerDocument.objects.filter(filter_former(state), document__in=documents).order_by()
    return {
        **spans,
        **{document: list(map(tuple, cut)) for document, cut in former.values_list("document", "sections")},
    }


def delete_history(collection: Collection) -> None:
    """Delete the recorded states of a collection that is about to be deleted, and the former documents."""
    delete_rows(FormerDocument.objects.filter(document__collection=collection))
    delete_rows(CollectionState.objects.filter(collection=collection))


def _find_last(collection: Collection) -> CollectionState | None:
    return CollectionState.objects.filter(collection=collection).order_by("-number").first()
