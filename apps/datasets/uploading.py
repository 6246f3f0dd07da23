"""Uploads of datasets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from apps.datasets.formats.registry import read_dataset
from apps.datasets.records import DatasetRecord
from benchbench.errors import BenchbenchError
from benchbench.files.archives import require_unpacked_size
from benchbench.site.pages import stored

TURN_SECONDS = 30  # the longest wait for another upload

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
    rows, or that unpacks to more than BENCHMARK_DATASET_MAX_UNPACKED_BYTES, is refused before it is read.
    """
    with stored(upload) as path:
        require_unpacked_size(path, max_bytes=settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES)
        return read_dataset(path, is_upload=True, **options)
