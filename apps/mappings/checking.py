"""Checks of a dataset version: judgments that would find no document in a collection."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from django.conf import settings

from apps.collections.models import Collection, Document, Section, list_live
from apps.datasets.exporting import record_of
from apps.datasets.models import DatasetVersion
from apps.datasets.records import JudgmentRecord
from apps.mappings.models import Mapping, Resolution
from apps.mappings.references import FIELDS, resolve_reference
from apps.mappings.rereading import UnmatchedError, find_reading
from apps.mappings.resolving import CHUNK, load_catalogue
from benchbench.errors import ConflictError
from benchbench.reading.strict_json import dump_canonical


@dataclass(frozen=True)
class Dangling:
    """A judgment that leads nowhere, and why, in a sentence."""

    query_key: str
    reason: str


@dataclass(frozen=True)
class References:
    """The number of judgments checked, and those whose document or section is not in the collection."""

    checked: int
    dangling: tuple[Dangling, ...]


def check_version(version: DatasetVersion, collection: Collection) -> References:
    """Look up the judgments of a version or draft among the live documents of `collection`, as resolving does.

    Raises ConflictError for more judgments than BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS; resolving queues that many.
    """
    limit = settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS
    if (number := version.judgments.count()) > limit:
        raise ConflictError(
            f"{version} has {number:,} judgments, more than are looked up at once "
            f"({limit:,}, BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS): resolve the mapping instead."
        )
    judgments = ((query.key, judgment) for query in record_of(version).queries for judgment in query.judgments)
    dangling: list[Dangling] = []
    while chunk := list(islice(judgments, CHUNK)):
        dangling.extend(_yield_dangling(chunk, collection))
    return References(number, tuple(dangling))


def _yield_dangling(chunk: list[tuple[str, JudgmentRecord]], collection: Collection) -> Iterator[Dangling]:
    catalogue = load_catalogue(collection, (judgment.doc_ref for _, judgment in chunk))
    verdicts = [resolve_reference(judgment.doc_ref, catalogue) for _, judgment in chunk]
    documents = {
        verdict.document_id for verdict, (_, judgment) in zip(verdicts, chunk, strict=True) if judgment.section_refs
    }
    rows = Section.objects.filter(document__in=documents - {None}).order_by()
    sections = set(rows.values_list("document_id", "section_id"))
    for (key, judgment), verdict in zip(chunk, verdicts, strict=True):
        if verdict.document_id is None:
            yield Dangling(key, verdict.reason)
            continue
        for section in judgment.section_refs or ():
            if (verdict.document_id, section) not in sections:
                reference = ", ".join(str(value) for value in judgment.doc_ref.values())[:100]
                yield Dangling(key, f"The document {reference!r} has no section {section[:100]!r}.")


def require_found(mapping: Mapping) -> None:
    """Raise UnmatchedError if no judgment found its document: every value would be 0 for any search."""
    if mapping.total_count and not mapping.mapped_count:
        sentence, key = _describe_first_loss(mapping)
        raise UnmatchedError(
            f'None of the {mapping.total_count:,} judgments of "{mapping.dataset}" matches a document of '
            f'"{mapping.collection}", so every value would be 0. {sentence}',
            by_command=f"--column {key}=COLUMN" if key else "",
        )


def _describe_first_loss(mapping: Mapping) -> tuple[str, str]:
    """Return what to do about a mapping without a match, and why the first judgment has no document, as sentences.

    Also the key by which the references match, if another would.
    """
    lost = Resolution.objects.at(None).filter(mapping=mapping, document=None).order_by("judgment_id")
    reason, key = lost.values_list("reason", "key").first() or ("", "")
    doc_refs = lost.values_list("judgment__doc_ref", flat=True).iterator(chunk_size=CHUNK)
    if reading := find_reading(doc_refs, mapping.collection):
        return f"The first: {reason} {reading.remedy}", reading.key
    return f"Check the collection. The first: {reason} {_describe_first_document(mapping.collection, key)}", ""


def _describe_first_document(collection: Collection, key: str) -> str:
    documents = list_live(collection).order_by("pk")
    value = documents.values_list(FIELDS.get(key, FIELDS["document_id"])[0], flat=True).first()
    return f"The first document there has the {key or 'document_id'} {str(value or '')[:100]!r}."


def describe_match(doc_refs: Iterable[object], collection: Collection) -> tuple[str, bool]:
    """Return in a sentence how many references match a document of a collection, and whether any does.

    If none does, the sentence has one of each side. Looks up the first BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS.
    """
    limit = settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS
    references = list({dump_canonical(doc_ref): doc_ref for doc_ref in islice(doc_refs, limit)}.values())
    verdicts = []
    for start in range(0, len(references), CHUNK):
        chunk = references[start : start + CHUNK]
        catalogue = load_catalogue(collection, chunk)
        verdicts += [resolve_reference(doc_ref, catalogue) for doc_ref in chunk]
    matched = sum(verdict.document_id is not None for verdict in verdicts)
    if matched or not verdicts:
        return f'{matched:,} of {len(verdicts):,} judged ids are of documents in "{collection}".', True
    first = f"The first: {verdicts[0].reason} {_describe_first_document(collection, verdicts[0].key)}"
    return f'None of the {len(verdicts):,} judged ids is of a document in "{collection}". {first}', False


def name_documents(doc_refs: Sequence[dict[str, object]], collection: Collection) -> list[str]:
    """Return by reference the title of its document, or how the text begins; "" where that adds nothing."""
    catalogue = load_catalogue(collection, doc_refs)
    keys = [resolve_reference(doc_ref, catalogue).document_id for doc_ref in doc_refs]
    documents = Document.objects.defer("text").in_bulk([key for key in keys if key is not None])
    names = [str(documents[key]) if key in documents else "" for key in keys]
    return [
        "" if any(name in str(value) for value in doc_ref.values()) else name
        for name, doc_ref in zip(names, doc_refs, strict=True)
    ]
