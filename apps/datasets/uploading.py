"""Uploads of datasets."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat

from apps.datasets.formats.reading import read_dataset
from apps.datasets.records import DatasetRecord, QueryRecord
from benchbench.errors import BenchbenchError
from benchbench.files.archives import require_unpacked_size
from benchbench.local_files.placing import scratch_folder
from benchbench.site.pages import SizedFileField
from benchbench.site.reading import cut_batches, store, stored, yield_read

TURN_SECONDS = 30  # the longest wait for another upload
JUDGMENTS = 2000  # and queries, that a reading process sends at once
REMEDY = "Leave queries out, or import it with manage.py import_dataset."

_turn = threading.Lock()
MOST_FILES = 20  # that are sent at once


class _FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True

    def value_from_datadict(self, data: object, files: Any, name: str) -> Any:
        """Return every chosen file."""
        return files.getlist(name) if hasattr(files, "getlist") else files.get(name)


class FilesField(SizedFileField):
    """A field of one or several files, which together may have `limit` bytes; its value is a list."""

    input_class = _FilesInput

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        uploads = data if isinstance(data, list) else [data] if data else []
        if len(uploads) > MOST_FILES:
            raise forms.ValidationError(f"{len(uploads)} files are chosen; at most {MOST_FILES} can be: pack a zip.")
        cleaned = [super(FilesField, self).clean(upload, initial) for upload in uploads or [None]]
        if (size := sum(upload.size for upload in uploads)) > self.most_bytes:
            raise forms.ValidationError(f"The files have {filesizeformat(size)}; {self.rule}")
        return list(filter(None, cleaned))


@contextmanager
def stored_together(uploads: Sequence[UploadedFile]) -> Iterator[Path]:
    """Store an uploaded file under its name while the block runs, or several in a folder. Names must differ."""
    if len(uploads) == 1:
        with stored(uploads[0]) as path:
            yield path
        return
    with scratch_folder() as folder:
        for upload in uploads:
            path = folder / (upload.name or "upload")
            if path.exists():
                raise BenchbenchError(f"Two files are called {path.name}: rename one.", field="file")
            store(upload, folder)
        yield folder


class BusyError(BenchbenchError):
    """The site is reading another upload."""

    code = "busy"
    status = 503


@contextmanager
def upload_turn() -> Iterator[None]:
    """Exclude other uploads of this process during the block, because each dataset is in memory as a whole.

    Raises BusyError if the one before it takes too long.
    """
    if not _turn.acquire(timeout=TURN_SECONDS):
        raise BusyError("The site is reading another large dataset: upload yours again in a minute.")
    try:
        yield
    finally:
        _turn.release()


def read_upload(uploads: Sequence[UploadedFile], **options: Any) -> DatasetRecord:
    """Return the dataset of an uploaded file, or of several; the options are those of `read_dataset`.

    A dataset is in memory as a whole: call this in an `upload_turn`. A file with more than BENCHMARK_DATASET_MAX_ROWS
    rows, or that unpacks to more than BENCHMARK_DATASET_MAX_UNPACKED_BYTES, is refused before it is read. Raises the
    errors of `yield_read` too.
    """
    with stored_together(uploads) as path:
        pieces = iter(yield_read(yield_dataset, path, remedy=REMEDY, **options))
        record = next(pieces)
        assert isinstance(record, DatasetRecord)
        return replace(record, queries=[query for batch in pieces if isinstance(batch, list) for query in batch])


def yield_dataset(path: Path, **options: Any) -> Iterator[DatasetRecord | list[QueryRecord]]:
    """Yield the dataset of an uploaded file, or of a folder of them, without its queries; then these in batches."""
    paths = sorted(path.iterdir()) if path.is_dir() else [path]
    for each in paths:
        require_unpacked_size(each, max_bytes=settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES)
    record = read_dataset(paths, is_upload=True, **options)
    yield replace(record, queries=[])
    yield from cut_batches(record.queries, max_weight=JUDGMENTS, weigh=lambda query: 1 + len(query.judgments))
