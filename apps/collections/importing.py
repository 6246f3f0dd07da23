"""Creating a collection and importing documents into it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.collections.languages import LANGUAGE_FIELDS, read_language, set_language, update_guess
from apps.collections.models import Collection, Document, Section, compute_fingerprint, list_live
from apps.collections.records import DocumentRecord, Reading, SectionRecord
from apps.collections.sources import Source
from apps.collections.states import find_next_number, keep_former
from benchbench.database import binary
from benchbench.database.failures import read_again
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.names import check_name, use_free_name

CHUNK = 1000
ONE_DOCUMENT = (
    "an id names one document. Give each its own id; import a document with several versions once, with all of them "
    'in its metadata, such as "version": ["16.0", "17.0"]'
)
TEXTS = ("uri", "content_hash", "file_name", "title", "text")
CONTENT = (*TEXTS, "metadata")


class CollectionImportError(BenchbenchError):
    """The documents cannot form a collection."""

    code = "invalid_collection"


@dataclass
class ImportReport:
    """Report of an import. `duplicates` counts equal repetitions of documents, `empty` documents without a text.

    `notes` and `warnings` are of what was read.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    duplicates: int = 0
    empty: int = 0
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def keep(self, reading: Reading, collection: Collection) -> None:
        """Take what was read of a file, and store it with the collection, whose page shows it."""
        self.notes, self.warnings = reading.notes, reading.warnings
        Collection.objects.filter(pk=collection.pk).update(metadata=collection.metadata | {"read": reading.notes})

    def __str__(self) -> str:
        counts = [(name, count) for name, count in vars(self).items() if isinstance(count, int)]
        return ", ".join(f"{count:,} {name}" for name, count in counts if count or name != "empty")


def create_collection(
    name: str,
    *,
    owner: User | None = None,
    description: str = "",
    kind: Collection.Kind = Collection.Kind.DOCUMENTS,
    language: str = "",
) -> Collection:
    """Create an empty collection. An empty language is guessed from the documents that are imported.

    Raises ConflictError if the owner has one with that name, LanguageError.
    """
    name, language = check_name(name, "collection"), read_language(language)
    with refuse_taken(name):
        return Collection.objects.create(name=name, owner=owner, description=description, kind=kind, language=language)


@contextmanager
def refuse_taken(name: str) -> Iterator[None]:
    """Raise ConflictError if the owner has another collection of that name."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        raise ConflictError(f'A collection "{name}" already exists: choose another name.', field="name") from None


@transaction.atomic
def import_collection(
    source: Source,
    *,
    name: str,
    owner: User | None = None,
    language: str = "",
    remove_missing: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[Collection, ImportReport]:
    """Import `source` into the owner's collection `name`, all of it or nothing. Make the collection if necessary.

    `language` replaces that of the collection, unless it is empty.
    """
    collection = Collection.objects.filter(owner=owner, name=name.strip()).first()
    if collection is None:
        collection = create_collection(name, owner=owner, language=language)
    elif language:
        set_language(collection, language)
    report = import_documents(collection, source.documents, remove_missing=remove_missing, on_progress=on_progress)
    report.keep(source.reading, collection)
    return collection, report


@transaction.atomic
def import_documents(
    collection: Collection,
    records: Iterable[DocumentRecord],
    *,
    remove_missing: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> ImportReport:
    """Make a collection equal to `records`, all of it or nothing, and return a report.

    Unchanged documents are left alone. Documents missing from `records` are soft-deleted, unless `remove_missing` is
    off, and restored when they are imported again. Records are read once, 1,000 in memory at a time; only the id and 16
    bytes of each are remembered. The collection is locked meanwhile: a second import waits. `on_progress` is called
    with the number of records read. Raises DocumentError for a record that cannot be stored and for an id with
    different contents, CollectionImportError for an empty source, and ConflictError if the collection holds the ids of
    external runs.
    """
    locked = read_again(Collection.objects.select_for_update(), collection.pk)
    if locked.kind == Collection.Kind.EXTERNAL:
        raise ConflictError(
            f'The collection "{locked}" holds the ids of external runs, and no documents: choose another name.',
            field="name",
        )
    state = None if not locked.documents.exists() else find_next_number(locked)
    seen: dict[str, bytes] = {}
    report = ImportReport()
    read = 0
    iterator = iter(records)
    while chunk := list(islice(iterator, CHUNK)):
        _store(locked, _select_fresh(chunk, seen, report), report, state)
        read += len(chunk)
        if on_progress:
            on_progress(read)
    if not seen:
        raise CollectionImportError("The source has no documents to import.")
    if remove_missing:
        report.removed = _remove_missing(locked, seen, state or 0)
    collection.fingerprint = locked.fingerprint = compute_fingerprint(locked)
    collection.document_count = locked.document_count = list_live(locked).count()
    update_guess(locked)
    for name in LANGUAGE_FIELDS:
        setattr(collection, name, getattr(locked, name))
    locked.save(update_fields=["fingerprint", "document_count", *LANGUAGE_FIELDS, "updated_at"])
    return report


def _select_fresh(chunk: list[DocumentRecord], seen: dict[str, bytes], report: ImportReport) -> list[DocumentRecord]:
    """Return the records with new ids, and remember these."""
    fresh = []
    for record in chunk:
        record.check()
        digest = record.digest()
        if record.external_id not in seen:
            seen[record.external_id] = digest
            report.empty += not record.text.strip()
            fresh.append(record)
        elif seen[record.external_id] == digest:
            report.duplicates += 1
        else:
            raise record.build_error(f"occurs before with other content: {ONE_DOCUMENT}", "external_id")
    return fresh


def _store(collection: Collection, records: list[DocumentRecord], report: ImportReport, state: int | None) -> None:
    """Store new and changed records, as contents of a state of the collection; None: of an empty collection.

    Nothing is looked up in an empty one: without statistics PostgreSQL would read all its documents each time.
    """
    ids = [] if state is None else [record.external_id for record in records]
    stored = Document.objects.filter(collection=collection, external_id__in=ids)
    documents_by_id = {document.external_id: document for document in stored}
    sections = _load_sections(documents_by_id)
    changed = []
    for record in records:
        document = documents_by_id.get(record.external_id)
        if document is None:
            report.created += 1
        elif document.removed_at or _differs(document, record) or sections[record.external_id] != list(record.sections):
            report.updated += 1
        else:
            report.unchanged += 1
            continue
        changed.append(record)
    uuids = {external_id: document.uuid for external_id, document in documents_by_id.items()}
    uuids |= _create(
        collection, [record for record in changed if record.external_id not in documents_by_id], state or 0
    )
    _update(collection, [record for record in changed if record.external_id in documents_by_id], documents_by_id, state)
    moved = {record.external_id: record for record in changed if sections[record.external_id] != list(record.sections)}
    documents = Document.objects.filter(uuid__in=[uuids[external_id] for external_id in moved]).only("external_id")
    replaced = [document for document in documents if sections[document.external_id]]
    _store_sections([(document, moved[document.external_id]) for document in documents], replaced)


def _update(
    collection: Collection, records: Sequence[DocumentRecord], documents: dict[str, Document], state: int | None
) -> None:
    """Replace the contents of documents, by external_id, and keep those that a recorded state has."""
    since = state or 0
    keep_former([documents[record.external_id] for record in records], since)
    Document.objects.bulk_create(
        [
            Document(collection=collection, external_id=record.external_id, since=since, **_build_content(record))
            for record in records
        ],
        update_conflicts=True,
        unique_fields=["collection", "external_id"],
        update_fields=[*CONTENT, "removed_at", "since", "updated_at"],
    )


def _create(collection: Collection, records: Sequence[DocumentRecord], since: int) -> dict[str, UUID]:
    """Store new documents by COPY, which takes a third of the time of INSERT. Return the UUID of each external_id."""
    now = binary.timestamp(timezone.now())
    uuids = {record.external_id: uuid4() for record in records}
    rows = []
    for record in records:
        content = _build_content(record)
        metadata = binary.json(content.pop("metadata"))
        texts = [binary.text(content[name]) for name in TEXTS]
        identity = [binary.uuid(uuids[record.external_id]), binary.uuid(collection.pk), binary.text(record.external_id)]
        rows.append([*identity, *texts, metadata, binary.int4(since), now, now])
    columns = ("uuid", "collection_id", "external_id", *TEXTS, "metadata", "since", "created_at", "updated_at")
    binary.copy_rows(Document._meta.db_table, columns, rows)
    return uuids


def _build_content(record: DocumentRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in CONTENT} | {"content_hash": record.hash()}


def _differs(document: Document, record: DocumentRecord) -> bool:
    return any(getattr(document, name) != value for name, value in _build_content(record).items())


def _load_sections(documents_by_id: dict[str, Document]) -> dict[str, list[SectionRecord]]:
    """Return the sections of documents by external_id, in order; none for an unknown document."""
    sections: dict[str, list[SectionRecord]] = defaultdict(list)
    fields = ("section_id", "heading", "level", "start", "end")
    rows = Section.objects.filter(document__in=documents_by_id.values()).order_by("document_id", "ordinal")
    for external_id, *values in rows.values_list("document__external_id", *fields):
        sections[external_id].append(SectionRecord(*values))
    return sections


def _store_sections(moved: Sequence[tuple[Document, DocumentRecord]], replaced: Sequence[Document]) -> None:
    """Store the sections of documents, and delete the old ones of those `replaced`. Chunks refer to equal ones."""
    Section.objects.filter(document__in=replaced).delete()
    Section.objects.bulk_create(
        Section(document=document, ordinal=ordinal, **asdict(section))
        for document, record in moved
        for ordinal, section in enumerate(record.sections)
    )


def _remove_missing(collection: Collection, seen: dict[str, bytes], state: int) -> int:
    rows = list_live(collection).values_list("pk", "external_id").order_by()
    missing = [pk for pk, external_id in rows.iterator(chunk_size=10_000) if external_id not in seen]
    recorded = Document.objects.filter(pk__in=missing, since__lt=state).defer("text", "title").order_by("pk")
    for chunk in binary.batched(recorded.iterator(chunk_size=CHUNK), CHUNK):
        keep_former(chunk, state)
    now = timezone.now()
    return Document.objects.filter(pk__in=missing).update(removed_at=now, updated_at=now)


@transaction.atomic
def ensure_collection(
    records: Iterable[DocumentRecord], *, name: str, owner: User | None = None, language: str = ""
) -> tuple[Collection, bool]:
    """Return the owner's collection with exactly these documents, sections and language, and whether it existed.

    A new one is called `name`, with a number if that is taken; existing collections are not changed. An empty
    `language` is any. Raises the errors of `import_documents`, and LanguageError.
    """
    savepoint, owned = transaction.savepoint(), Collection.objects.filter(owner=owner)
    collection = use_free_name(name, [owned], lambda free: create_collection(free, owner=owner, language=language))
    import_documents(collection, records)
    equal = owned.filter(fingerprint=collection.fingerprint, kind=collection.kind).exclude(pk=collection.pk)
    equal = equal.filter(language=collection.language) if language else equal
    if existing := equal.order_by("created_at").first():
        transaction.savepoint_rollback(savepoint)
        return existing, True
    transaction.savepoint_commit(savepoint)
    return collection, False
