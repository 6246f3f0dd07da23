"""Uploads of documents: a corpus or table, or a zip of what a folder may hold."""

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, TypedDict, TypeVar, Unpack, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from apps.collections.folders import describe_skipped
from apps.collections.importing import ImportReport, create_collection, ensure_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord, Reading
from apps.collections.sources import Source, SourceError, describe_needs, open_source, refuse_judged
from apps.collections.tables import ENDINGS as TABLES
from benchbench.errors import BenchbenchError
from benchbench.files.archives import describe_binary, list_unread, require_unpacked_size, unpacked
from benchbench.files.documents import find_root
from benchbench.files.sniffing import SwappedError
from benchbench.site.reading import cut_batches, stored, yield_read

ENDINGS = (*TABLES, *(f"{ending}.gz" for ending in TABLES), ".zip")
ACCEPTED = ",".join((*TABLES, ".gz", ".zip", ".xml", ".sgml", ".trec", ".txt"))  # by the file dialogues of browsers
Batch = list[DocumentRecord] | Reading
T = TypeVar("T")


class SourceOptions(TypedDict, total=False):
    """Options of `open_source`."""

    uri_prefix: str
    references: Container[str]
    columns: Mapping[str, str]


CHARACTERS = 2**20  # of documents that a reading process sends at once
SAMPLE, FIRST, OPENING = 200, 5, 1000  # rows that a preview reads; documents in it; characters of their texts
REMEDY = "Cut it into several, or import it with manage.py import_collection."


@transaction.atomic
def upload_collection(
    upload: UploadedFile,
    *,
    name: str,
    description: str = "",
    language: str = "",
    owner: User | None = None,
    **options: Unpack[SourceOptions],
) -> tuple[Collection, ImportReport]:
    """Make a collection of an uploaded file's documents, all of it or nothing.

    Raises ConflictError where the owner has one of that name, and what `upload_documents` does.
    """
    collection = create_collection(name, owner=owner, description=description, language=language)
    return collection, upload_documents(collection, upload, **options)


def upload_documents(
    collection: Collection, upload: UploadedFile, *, remove_missing: bool = False, **options: Unpack[SourceOptions]
) -> ImportReport:
    """Import an uploaded file into a collection: a corpus or table, or a zip of a folder.

    That folder holds one of these, sectioned documents or texts. The options are those of `open_source`: `columns`, and
    `uri_prefix`, which with its path in the zip is the uri of a text: where the server unpacks it means nothing to
    anybody. Raises a sentence for any other file, one that unpacks to more than BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES, and
    what `import_documents` refuses.
    """
    reading = Reading()
    with _opened(upload, yield_documents, **options) as batches:
        report = import_documents(collection, _take(batches, reading), remove_missing=remove_missing)
    report.keep(reading, collection)
    return report


def find_name(upload: UploadedFile) -> str:
    """Return the name of an uploaded file without the endings of its format: "docs" of "docs.jsonl.gz"."""
    path = Path(upload.name or "documents")
    while path.suffix.lower() in ACCEPTED.split(","):
        path = path.with_suffix("")
    return path.name


def ensure_uploaded_collection(
    upload: UploadedFile, *, owner: User | None = None, language: str = "", **options: Unpack[SourceOptions]
) -> tuple[Collection, Reading]:
    """Return the owner's collection of exactly an uploaded file's documents; a new one gets the file's name if free.

    And what was read of a table. The options are those of `open_source`. Raises the errors of `upload_documents`.
    """
    reading, name = Reading(), find_name(upload)
    with _opened(upload, yield_documents, **options) as batches:
        collection, existed = ensure_collection(_take(batches, reading), name=name, owner=owner, language=language)
    if not existed:
        ImportReport().keep(reading, collection)
    return collection, reading


@dataclass(frozen=True)
class Preview:
    """The first documents of an uploaded file, and what was read of its first rows. `total` counts all, if known."""

    documents: list[DocumentRecord]
    reading: Reading
    total: int | None


def preview_documents(upload: UploadedFile, **options: Unpack[SourceOptions]) -> Preview:
    """Return the preview of an uploaded file. Raises the errors of `upload_documents`, as far as its rows are read."""
    with _opened(upload, yield_preview, **options) as previews:
        return next(previews)


def refuse_judged_upload(upload: UploadedFile) -> None:
    """Raise SwappedError for an uploaded file of queries or judgments; other faults are left to the import."""
    try:
        with _opened(upload, yield_documents) as batches:
            next(batches, None)
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
    upload: UploadedFile, read: Callable[..., Iterator[T]], **options: Unpack[SourceOptions]
) -> Iterator[Iterator[T]]:
    with stored(upload) as path:
        if not path.name.lower().endswith(ENDINGS) and not find_root(path):
            if binary := describe_binary(path):
                raise SourceError(f"{path.name} {binary}.", field="file")
            refuse_judged(path)
            raise SourceError(f"{path.name} is not a corpus{describe_needs(path)}", field="file")
        with closing(yield_read(read, path, remedy=REMEDY, **{"uri_prefix": ""} | options)) as pieces:
            yield pieces


def _take(batches: Iterable[Batch], reading: Reading) -> Iterator[DocumentRecord]:
    for batch in batches:
        if isinstance(batch, Reading):
            vars(reading).update(vars(batch))
        else:
            yield from batch


def yield_documents(path: Path, **options: Unpack[SourceOptions]) -> Iterator[Batch]:
    """Yield the documents of an uploaded file in batches, and then what was read of it."""
    with _unpacked(path, options) as source:
        yield from cut_batches(source.documents, max_weight=CHARACTERS, weigh=_weigh)
        yield source.reading


def yield_preview(path: Path, **options: Unpack[SourceOptions]) -> Iterator[Preview]:
    """Yield the preview of an uploaded file."""
    with _unpacked(path, options) as source:
        first, rows = [], 0
        with closing(cast(Generator[DocumentRecord], source.documents)) as documents:
            for document in islice(documents, SAMPLE):
                rows += 1
                document.check()
                if rows <= FIRST:
                    first.append(replace(document, text=document.text[:OPENING], metadata={}, sections=()))
        yield Preview(first, source.reading, source.total or (rows if rows < SAMPLE else None))


@contextmanager
def _unpacked(path: Path, options: SourceOptions) -> Iterator[Source]:
    max_bytes = settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES
    if path.suffix.lower() == ".zip":
        with unpacked(path, max_bytes=max_bytes) as folder:
            yield open_source(folder, **options)
    else:
        require_unpacked_size(path, max_bytes=max_bytes)
        yield open_source(path, **options)


def _weigh(document: DocumentRecord) -> int:
    return 1000 + len(document.text)
