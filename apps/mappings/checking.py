"""Checks of ground truth before an import: judgments that would find no document in a collection."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from django.conf import settings

from apps.collections.models import Collection, Section
from apps.datasets.exporting import record_of
from apps.datasets.models import DatasetVersion
from apps.datasets.records import DatasetRecord, JudgmentRecord
from apps.mappings.references.rules import resolve_reference
from apps.mappings.resolving import CHUNK, load_catalogue
from benchbench.errors import ConflictError


@dataclass(frozen=True)
class Dangling:
    """A judgment that leads nowhere, and why, in a sentence."""

    query_key: str
    reason: str


@dataclass(frozen=True)
class References:
    """How many judgments were looked up, and those whose document, or a section of it, is not in the collection."""

    checked: int
    dangling: tuple[Dangling, ...]


def check_references(record: DatasetRecord, collection: Collection) -> References:
    """Look up the judgments of `record` among the live documents of `collection`, by the rules of resolving."""
    dangling: list[Dangling] = []
    checked = 0
    judgments = ((query.key, judgment) for query in record.queries for judgment in query.judgments)
    while chunk := list(islice(judgments, CHUNK)):
        checked += len(chunk)
        dangling.extend(_dangling(chunk, collection))
    return References(checked, tuple(dangling))


def check_version(version: DatasetVersion, collection: Collection) -> References:
    """Look up the judgments of a version, a draft too, as `check_references` does.

    Raises ConflictError past BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS: resolving does that many on the queue.
    """
    most = settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS
    if (number := version.judgments.count()) > most:
        raise ConflictError(
            f"{version} has {number:,} judgments, more than are looked up at once "
            f"({most:,}, BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS): resolve the mapping instead."
        )
    return check_references(record_of(version), collection)


def _dangling(chunk: list[tuple[str, JudgmentRecord]], collection: Collection) -> Iterator[Dangling]:
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
                named = ", ".join(str(value) for value in judgment.doc_ref.values())[:100]
                yield Dangling(key, f"The document {named!r} has no section {section[:100]!r}.")
