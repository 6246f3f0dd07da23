"""Repair of judgments without a document, and judging of single documents, both in the dataset's draft."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet, Value

from apps.collections.models import Collection, Document, list_live
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments, remove_judgment, set_judgment
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query, filter_alive
from apps.datasets.records import JudgmentRecord
from apps.datasets.versions import find_version
from apps.mappings.models import Mapping, Resolution
from apps.mappings.references import read_reference, resolve_reference
from apps.mappings.resolving import load_catalogue
from benchbench.database.failures import read_again
from benchbench.errors import ConflictError
from benchbench.texts.words import normalize


class JudgingError(ConflictError):
    """The document cannot be judged for that query."""

    code = "cannot_judge"


def find_judgments(mapping: Mapping, version: DatasetVersion, query: Query) -> dict[int, list[Judgment]]:
    """Return the judgments of `query` in a frozen or draft version by the id of the document that each means now.

    Resolves them here, because a draft has no resolutions. Costs at most six queries for any number of judgments.
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
    mapping: Mapping, query: Query, document: Document, grade: int, *, by: User, note: str = ""
) -> Judgment:
    """Store in the draft that the user `by` grades `document` for `query` with `grade`, and return the judgment.

    Uses the dataset's reference to the document, if any, else the document's id. Removes further judgments of the same
    document, since the highest of several grades would count.
    """
    judgments = _lock_judgments(mapping, query, document)
    first = judgments[0] if judgments else None
    record = JudgmentRecord(
        first.doc_ref if first else {"document_id": document.external_id},
        grade,
        first.section_refs if first else None,
        Judgment.Source.HUMAN,
        judge=by.get_username(),
        note=note,
    )
    edits = [JudgmentEdit(query.key, record.doc_ref, record), *_build_removals(query, judgments[1:])]
    judgment = edit_judgments(mapping.dataset, edits, judged_by=by).judgments[0]
    assert judgment is not None
    return judgment


@transaction.atomic
def unjudge_document(mapping: Mapping, query: Query, document: Document) -> None:
    """Remove every judgment of `document` for `query` from the draft. Raises JudgingError without one."""
    judgments = _lock_judgments(mapping, query, document)
    if not judgments:
        raise JudgingError(f'"{document}" has no judgment for {query.key!a}: there is nothing to remove.')
    edit_judgments(mapping.dataset, _build_removals(query, judgments))


def find_documents(dataset: Dataset, doc_ref: dict[str, object]) -> list[tuple[Mapping, Document]]:
    """Return (mapping, document) for each mapping of the dataset to a collection that has the reference's document."""
    meant = []
    for mapping in _list_document_mappings(dataset):
        document_id = resolve_reference(doc_ref, load_catalogue(mapping.collection, [doc_ref])).document_id
        if document_id is not None:
            meant.append((mapping, read_again(Document.objects.all(), document_id)))
    return meant


def require_document(dataset: Dataset, doc_ref: dict[str, Any]) -> None:
    """Raise JudgingError if the dataset is mapped to collections of documents and none has the document of `doc_ref`.

    Such a judgment would count as a document that no search can find. Without such a mapping nothing is checked.
    """
    collections = {mapping.collection for mapping in _list_document_mappings(dataset)}
    if collections and not find_documents(dataset, doc_ref):
        (key, value), *_ = doc_ref.items()
        several = f"the {len(collections)} collections of the dataset"
        names = several if len(collections) > 1 else f'"{collections.pop()}"'
        raise JudgingError(
            f"No document of {names} has the {key.replace('_', ' ')} {value[:100]!a}: correct it, or state the "
            "judgment without a document.",
            field="reference",
        )


def _list_document_mappings(dataset: Dataset) -> list[Mapping]:
    rows = Mapping.objects.filter(dataset=dataset).exclude(collection__kind=Collection.Kind.EXTERNAL)
    return list(rows.select_related("dataset", "collection").order_by("collection__name", "pk"))


def _build_removals(query: Query, judgments: list[Judgment]) -> list[JudgmentEdit]:
    return [JudgmentEdit(query.key, judgment.doc_ref, None) for judgment in judgments]


def _lock_judgments(mapping: Mapping, query: Query, document: Document) -> list[Judgment]:
    """Lock the dataset and return its current judgments of `document` for `query`.

    Raises JudgingError if the query was changed or removed, or the document was removed.
    """
    read_again(Dataset.objects.select_for_update(), mapping.dataset_id)
    version = find_version(mapping.dataset, edited=True)
    if not version.queries.filter(pk=query.pk).exists():
        raise JudgingError(
            f"The query {query.key!a} was reworded or removed since: judge it as {version.dataset} has it now."
        )
    if document.removed_at is not None:
        raise JudgingError(f'"{document}" was removed from the collection: a judgment could not be resolved to it.')
    return find_judgments(mapping, version, query).get(document.pk, [])


class RepairError(ConflictError):
    """The judgment cannot be repaired in this way."""

    code = "cannot_repair"


def find_candidates(documents: QuerySet[Document], doc_ref: object, *, term: str = "") -> list[Document]:
    """Return up to MOST_CANDIDATES live documents with `term` in a name, or without it those that `doc_ref` may mean.

    A document fits if it matches any value of the reference, whole or by its last part, composed or decomposed:
    `lib/pears.md` may mean the file pears.md or the document pears. So the candidates of an ambiguous reference include
    its matches.
    """
    live_documents = documents.filter(removed_at=None).defer("text").order_by("external_id")
    if term:
        fields = ("external_id", "title", "file_name", "uri")
        matches = [Q(**{f"{field}__icontains": term}) for field in fields]
        return list(live_documents.filter(matches[0] | matches[1] | matches[2] | matches[3])[:MOST_CANDIDATES])
    written = [value for value in doc_ref.values() if isinstance(value, str)] if isinstance(doc_ref, dict) else []
    values = [form for value in written for form in dict.fromkeys([value, *(normalize(value, name) for name in FORMS)])]
    paths = [PurePosixPath(value) for value in values]
    names = {*values, *(path.name for path in paths), *(path.stem for path in paths)} - {""}
    hashes = [value.lower() for value in values]
    fits = Q(external_id__in=names) | Q(file_name__in=names) | Q(uri__in=values) | Q(content_hash__in=hashes)
    return list(live_documents.filter(fits)[:MOST_CANDIDATES])


@transaction.atomic
def repoint(mapping: Mapping, judgment: Judgment, document: Document, *, by: User) -> Judgment:
    """Point `judgment` at `document` in the draft, and keep its grade, judge and note.

    Raises RepairError if the document already has a judgment for the query: the higher of two grades would count.
    """
    _require_current(mapping, judgment)
    if document.collection_id != mapping.collection_id or document.removed_at is not None:
        raise RepairError(f'"{document}" is not in the collection "{mapping.collection}": choose another document.')
    version = find_version(mapping.dataset, edited=True)
    judgments = find_judgments(mapping, version, judgment.query).get(document.pk, [])
    if judgment in judgments:
        raise RepairError(f'The reference finds "{document}" now: resolve the mapping again.')
    if judgments:
        raise RepairError(
            f'"{document}" has the grade {judgments[0].grade} for {judgment.query.key!a} already: drop this judgment, '
            "or change the grade of that document."
        )
    remove_judgment(mapping.dataset, judgment.query.key, judgment.doc_ref)
    reference = {"document_id": document.external_id}
    record = JudgmentRecord(
        reference, judgment.grade, judgment.section_refs, judgment.source, judgment.judge, judgment.note
    )
    return set_judgment(mapping.dataset, judgment.query.key, record, judged_by=by)


@transaction.atomic
def drop(mapping: Mapping, judgment: Judgment) -> None:
    """Remove the judgment from the draft."""
    _require_current(mapping, judgment)
    remove_judgment(mapping.dataset, judgment.query.key, judgment.doc_ref)


def _require_current(mapping: Mapping, judgment: Judgment) -> None:
    """Lock the dataset. Raises RepairError if the judgment was edited since the mapping was resolved."""
    read_again(Dataset.objects.select_for_update(), mapping.dataset_id)
    if not Judgment.objects.filter(pk=judgment.pk, until=None, query__until=None).exists():
        raise RepairError(
            "This judgment was changed or removed since: freeze the draft, and resolve the mapping again."
        )


MOST_CANDIDATES = 10
FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")  # macOS decomposes names of files
CANDIDATE_FIELDS = ("uuid", "external_id", "uri", "file_name", "title")


def load_unresolved(mapping: Mapping) -> QuerySet[Resolution]:
    """Return the resolutions without a document for the version that `mapping` was resolved for, by judgment id."""
    lost = Resolution.objects.at(None).filter(mapping=mapping).exclude(outcome=Resolution.Outcome.RESOLVED)
    if mapping.dataset_version is None:
        return lost.none()
    number = mapping.dataset_version.number
    of_version = lost.filter(filter_alive(number, "judgment__"), filter_alive(number, "judgment__query__"))
    return of_version.select_related("judgment__query").order_by("judgment_id")


def add_candidates(mapping: Mapping, resolutions: Sequence[Resolution]) -> Sequence[Resolution]:
    """Set `candidates` on each resolution: up to MOST_CANDIDATES current documents if it is ambiguous. One query."""
    documents = list_live(mapping.collection).order_by("external_id")
    looked_up = [
        documents.filter(**dict(read_reference(row.judgment.doc_ref).lookups[:1]))
        .annotate(of=Value(row.pk))
        .values("of", *CANDIDATE_FIELDS)[:MOST_CANDIDATES]
        for row in resolutions
        if row.outcome == Resolution.Outcome.AMBIGUOUS  # so its reference is valid and its key matches one field
    ]
    candidates = defaultdict(list)
    if looked_up:
        for document in looked_up[0].union(*looked_up[1:], all=True):
            candidates[document["of"]].append(document)
    for row in resolutions:
        vars(row)["candidates"] = sorted(candidates[row.pk], key=lambda document: document["external_id"])
    return resolutions
