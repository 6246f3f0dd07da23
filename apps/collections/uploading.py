"""Uploads of documents: a corpus or table, or a zip of what a folder may hold."""

from collections.abc import Container, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from apps.collections.folders import describe_skipped
from apps.collections.importing import ImportReport, create_collection, ensure_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.collections.sources import Source, SourceError, open_source, refuse_judged
from apps.collections.tables import ENDINGS as TABLES
from benchbench.errors import BenchbenchError
from benchbench.files.archives import describe_binary, list_unread, require_unpacked_size, unpacked
from benchbench.files.sniffing import SwappedError
from benchbench.site.pages import stored
from benchbench.site.reading import cut_batches, yield_read

ENDINGS = (*TABLES, *(f"{ending}.gz" for ending in TABLES), ".zip")
ACCEPTED = ",".join((*TABLES, ".gz", ".zip"))  # by the file dialogues of browsers
Batch = tuple[list[DocumentRecord], list[str]]
CHARACTERS = 2**20  # of documents that a reading process sends at once
REMEDY = "Cut it into several, or import it with manage.py import_collection."


@transaction.atomic
def upload_collection(
    upload: UploadedFile,
    *,
    name: str,
    description: str = "",
    language: str = "",
    owner: User | None = None,
    uri_prefix: str = "",
) -> tuple[Collection, ImportReport]:
    """Make a collection of an uploaded file's documents, all of it or nothing.

    Raises ConflictError where the owner has one of that name, and what `upload_documents` does.
    """
    collection = create_collection(name, owner=owner, description=description, language=language)
    return collection, upload_documents(collection, upload, uri_prefix=uri_prefix)


def upload_documents(
    collection: Collection, upload: UploadedFile, *, uri_prefix: str = "", remove_missing: bool = False
) -> ImportReport:
    """Import an uploaded file into a collection: a corpus or table, or a zip of a folder.

    That folder holds one of these, sectioned documents or texts. The uri of a text is `uri_prefix` and its path in the
    zip: where the server unpacks it means nothing to anybody. Raises a sentence for any other file, one that unpacks to
    more than BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES, and what `import_documents` refuses.
    """
    notes: list[str] = []
    with _opened(upload, uri_prefix, notes) as documents:
        report = import_documents(collection, documents, remove_missing=remove_missing)
    report.notes = notes
    return report


def ensure_uploaded_collection(
    upload: UploadedFile, *, name: str, owner: User | None = None, references: Container[str] = ()
) -> tuple[Collection, list[str]]:
    """Return the owner's collection of exactly an uploaded file's documents; a new one gets the free name after `name`.

    And what was read of a table. `references` are those that judgments make to documents, see `open_source`. Raises the
    errors of `upload_documents`.
    """
    notes: list[str] = []
    with _opened(upload, "", notes, references) as documents:
        return ensure_collection(documents, name=name, owner=owner)[0], notes


def refuse_judged_upload(upload: UploadedFile) -> None:
    """Raise SwappedError for an uploaded file of queries or judgments; other faults are left to the import."""
    try:
        with _opened(upload, "", []) as documents:
            next(documents, None)
    except SwappedError:
        raise
    except BenchbenchError:
        return


def describe_unread(upload: UploadedFile) -> str:
    """Return the sentence about documents in an uploaded zip that are not read; "" for none."""
    upload.seek(0)
    return describe_skipped(list_unread(cast(IO[bytes], upload.file)))


@contextmanager
def _opened(
    upload: UploadedFile, uri_prefix: str, notes: list[str], references: Container[str] = ()
) -> Iterator[Iterator[DocumentRecord]]:
    with stored(upload) as path:
        if not path.name.lower().endswith(ENDINGS):
            if binary := describe_binary(path):
                raise SourceError(f"{path.name} {binary}.", field="file")
            refuse_judged(path)
            raise SourceError(
                f"{path.name} is not a corpus: its name must end in {', '.join((*TABLES, '.zip'))}, or .gz.",
                field="file",
            )
        options = {"uri_prefix": uri_prefix, "references": references}
        with closing(yield_read(yield_documents, path, remedy=REMEDY, **options)) as batches:
            yield _take(batches, notes)


def _take(batches: Iterable[Batch], notes: list[str]) -> Iterator[DocumentRecord]:
    for documents, further in batches:
        yield from documents
        notes += further


def yield_documents(path: Path, *, uri_prefix: str, references: Container[str] = ()) -> Iterator[Batch]:
    """Yield the documents of an uploaded file in batches, and then an empty one with the notes about them."""
    max_bytes = settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES
    if path.suffix.lower() == ".zip":
        with unpacked(path, max_bytes=max_bytes) as folder:
            yield from _cut(open_source(folder, uri_prefix=uri_prefix, references=references))
    else:
        require_unpacked_size(path, max_bytes=max_bytes)
        yield from _cut(open_source(path, uri_prefix=uri_prefix))


def _cut(source: Source) -> Iterator[Batch]:
    for documents in cut_batches(source.documents, max_weight=CHARACTERS, weigh=_weigh):
        yield documents, []
    yield [], source.notes


def _weigh(document: DocumentRecord) -> int:
    return 1000 + len(document.text)
