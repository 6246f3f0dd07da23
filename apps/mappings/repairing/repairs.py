"""Repairs of a judgment that found no document: point it at one, or drop it, in the draft of the dataset."""

from pathlib import PurePosixPath
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.collections.models import Document
from apps.datasets.editing.judgments import remove_judgment, set_judgment
from apps.datasets.finding import find_version
from apps.datasets.models import Dataset, Judgment
from apps.datasets.records import JudgmentRecord
from apps.mappings.models import Mapping
from apps.mappings.repairing.judging import stated_for
from apps.mappings.repairing.unresolved import MOST_CANDIDATES
from benchbench.database.rereading import read_again
from benchbench.errors import ConflictError


class RepairError(ConflictError):
    """The judgment cannot be repaired so."""

    code = "cannot_repair"


def candidates(documents: QuerySet[Document], doc_ref: Any, *, term: str = "") -> list[Document]:
    """Return up to MOST_CANDIDATES live documents that have `term` in a name, or without it what `doc_ref` may mean.

    That is what any of its values fits, whole or by its last part: `lib/pears.md` may mean the file pears.md, or the
    document pears. So an ambiguous reference has all that it fits among them.
    """
    there = documents.filter(removed_at=None).defer("text").order_by("external_id")
    if term:
        fields = ("external_id", "title", "file_name", "uri")
        matches = [Q(**{f"{field}__icontains": term}) for field in fields]
        return list(there.filter(matches[0] | matches[1] | matches[2] | matches[3])[:MOST_CANDIDATES])
    values = [value for value in doc_ref.values() if isinstance(value, str)] if isinstance(doc_ref, dict) else []
    paths = [PurePosixPath(value) for value in values]
    names = {*values, *(path.name for path in paths), *(path.stem for path in paths)} - {""}
    hashes = [value.lower() for value in values]
    fits = Q(external_id__in=names) | Q(file_name__in=names) | Q(uri__in=values) | Q(content_hash__in=hashes)
    return list(there.filter(fits)[:MOST_CANDIDATES])


@transaction.atomic
def repoint(mapping: Mapping, judgment: Judgment, document: Document, *, by: Any) -> Judgment:
    """State in the draft that `judgment` is of `document`, in place of what it names; grade, judge and note stay.

    Raises RepairError where the document is judged for the query already: of two grades the higher would count.
    """
    _require_current(mapping, judgment)
    if document.collection_id != mapping.collection_id or document.removed_at is not None:
        raise RepairError(f'"{document}" is not in the collection "{mapping.collection}": choose another document.')
    version = find_version(mapping.dataset, edited=True)
    judgments = stated_for(mapping, version, judgment.query).get(document.pk, [])
    if judgment in judgments:
        raise RepairError(f'The reference finds "{document}" now: resolve the mapping again.')
    if judgments:
        raise RepairError(
            f'"{document}" has the grade {judgments[0].grade} for {judgment.query.key!a} already: drop this judgment, '
            "or judge that document anew."
        )
    remove_judgment(mapping.dataset, judgment.query.key, judgment.doc_ref)
    reference = {"document_id": document.external_id}
    record = JudgmentRecord(
        reference, judgment.grade, judgment.section_refs, judgment.source, judgment.judge, judgment.note
    )
    return set_judgment(mapping.dataset, judgment.query.key, record, judged_by=by)


@transaction.atomic
def drop(mapping: Mapping, judgment: Judgment) -> None:
    """Take the judgment out of the draft, as if nobody had stated it."""
    _require_current(mapping, judgment)
    remove_judgment(mapping.dataset, judgment.query.key, judgment.doc_ref)


def _require_current(mapping: Mapping, judgment: Judgment) -> None:
    """Lock the dataset, and raise RepairError where the judgment was edited since the mapping was resolved."""
    read_again(Dataset.objects.select_for_update(), mapping.dataset_id)
    if not Judgment.objects.filter(pk=judgment.pk, until=None, query__until=None).exists():
        raise RepairError(
            "This judgment was changed or removed since: freeze the draft, and resolve the mapping again."
        )
