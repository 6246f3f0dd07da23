"""Uploads of documents: a corpus file, or a zip of what a folder may hold."""

from collections.abc import Container, Iterator
from contextlib import closing, contextmanager
from itertools import chain
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
from apps.collections.sources import SourceError, open_source, refuse_judged
from benchbench.files.archives import describe_binary, list_unread, require_unpacked_size, unpacked
from benchbench.site.pages import stored
from benchbench.site.reading import cut_batches, yield_read

ENDINGS = (".jsonl", ".jsonl.gz", ".zip")
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
    """Import an uploaded file into a collection: a corpus (.jsonl, .jsonl.gz), or a zip of a folder.

    That folder holds a corpus, sectioned documents or texts. The uri of a text is `uri_prefix` and its path in the zip:
    where the server unpacks it means nothing to anybody. Raises a sentence for any other file, one that unpacks to more
    than BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES, and what `import_documents` refuses.
    """
    with _opened(upload, uri_prefix) as documents:
        return import_documents(collection, documents, remove_missing=remove_missing)


def ensure_uploaded_collection(
    upload: UploadedFile, *, name: str, owner: User | None = None, references: Container[str] = ()
) -> Collection:
    """Return the owner's collection of exactly an uploaded file's documents; a new one gets the free name after `name`.

    `references` are those that judgments make to documents, see `open_source`. Raises the errors of `upload_documents`.
    """
    with _opened(upload, "", references) as documents:
        return ensure_collection(documents, name=name, owner=owner)[0]


def describe_unread(upload: UploadedFile) -> str:
    """Return the sentence about documents in an uploaded zip that are not read; "" for none."""
    upload.seek(0)
    return describe_skipped(list_unread(cast(IO[bytes], upload.file)))


@contextmanager
def _opened(
    upload: UploadedFile, uri_prefix: str, references: Container[str] = ()
) -> Iterator[Iterator[DocumentRecord]]:
    with stored(upload) as path:
        if not path.name.lower().endswith(ENDINGS):
            if binary := describe_binary(path):
                raise SourceError(f"{path.name} {binary}.", field="file")
            refuse_judged(path)
            raise SourceError(f"{path.name} is not a corpus: its name must end in {', '.join(ENDINGS)}.", field="file")
        options = {"uri_prefix": uri_prefix, "references": references}
        with closing(yield_read(yield_documents, path, remedy=REMEDY, **options)) as batches:
            yield chain.from_iterable(batches)


def yield_documents(path: Path, *, uri_prefix: str, references: Container[str] = ()) -> Iterator[list[DocumentRecord]]:
    """Yield the documents of an uploaded file in batches."""
    max_bytes = settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES
    if path.suffix.lower() == ".zip":
        with unpacked(path, max_bytes=max_bytes) as folder:
            yield from _cut(open_source(folder, uri_prefix=uri_prefix, references=references).documents)
    else:
        require_unpacked_size(path, max_bytes=max_bytes)
        yield from _cut(open_source(path, uri_prefix=uri_prefix).documents)


def _cut(documents: Iterator[DocumentRecord]) -> Iterator[list[DocumentRecord]]:
    return cut_batches(documents, max_weight=CHARACTERS, weigh=lambda document: 1000 + len(document.text))
