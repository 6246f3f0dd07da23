"""Uploads of datasets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from apps.datasets.formats.reading import read_dataset
from apps.datasets.records import DatasetRecord, QueryRecord
from benchbench.errors import BenchbenchError
from benchbench.files.archives import require_unpacked_size
from benchbench.site.pages import stored
from benchbench.site.reading import cut_batches, yield_read

TURN_SECONDS = 30  # the longest wait for another upload
JUDGMENTS = 2000  # and queries, that a reading process sends at once
REMEDY = "Leave queries out, or import it with manage.py import_dataset."

_turn = threading.Lock()


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


def read_upload(upload: UploadedFile, **options: Any) -> DatasetRecord:
    """Return the dataset of an uploaded file; the options are those of `read_dataset`.

    A dataset is in memory as a whole: call this in an `upload_turn`. A file with more than BENCHMARK_DATASET_MAX_ROWS
    rows, or that unpacks to more than BENCHMARK_DATASET_MAX_UNPACKED_BYTES, is refused before it is read. Raises the
    errors of `yield_read` too.
    """
    with stored(upload) as path:
        pieces = iter(yield_read(yield_dataset, path, remedy=REMEDY, **options))
        record = next(pieces)
        assert isinstance(record, DatasetRecord)
        return replace(record, queries=[query for batch in pieces if isinstance(batch, list) for query in batch])


def yield_dataset(path: Path, **options: Any) -> Iterator[DatasetRecord | list[QueryRecord]]:
    """Yield the dataset of an uploaded file without its queries, then its queries in batches."""
    require_unpacked_size(path, max_bytes=settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES)
    record = read_dataset(path, is_upload=True, **options)
    yield replace(record, queries=[])
    yield from cut_batches(record.queries, max_weight=JUDGMENTS, weigh=lambda query: 1 + len(query.judgments))
