"""Uploads of datasets, and previews of what importing one would keep."""

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from apps.datasets.formats.registry import Limits, read_dataset
from apps.datasets.importing import warnings_of
from apps.datasets.records import DatasetRecord, QueryRecord, check
from benchbench.errors import BenchbenchError
from benchbench.files.archives import require_unpacked_size
from benchbench.site.pages import stored

TURN_SECONDS = 30  # that an upload waits for the one before it

_turn = threading.Lock()


class BusyError(BenchbenchError):
    """The site is reading another upload."""

    code = "busy"
    status = 503


@contextmanager
def upload_turn() -> Iterator[None]:
    """Have no other dataset in the memory of this process meanwhile: each is there as a whole.

    Raises BusyError where the one before it takes too long.
    """
    if not _turn.acquire(timeout=TURN_SECONDS):
        raise BusyError("The site is reading another large dataset: upload yours again in a minute.")
    try:
        yield
    finally:
        _turn.release()


def read_upload(
    upload: UploadedFile,
    *,
    format: str = "",
    split: str = "",
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
) -> DatasetRecord:
    """Return the dataset that an uploaded file states; the options are those of `read_dataset`.

    A dataset is in memory as a whole: call it in an `upload_turn`. One of more than BENCHMARK_DATASET_MAX_ROWS rows, or
    that unpacks to more than BENCHMARK_DATASET_MAX_UNPACKED_BYTES, is refused before it is read.
    """
    with stored(upload) as path:
        limits = Limits(settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES, settings.BENCHMARK_DATASET_MAX_ROWS)
        require_unpacked_size(path, max_bytes=limits.unpacked_bytes)
        return read_dataset(path, format=format, split=split, columns=columns, ignore=ignore, limits=limits)


FIRST = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """What a source states: its counts, the first of its queries, and what looks wrong.

    `grades` counts judgments by grade, `slices` queries by slice; `duplicates` and `dangling` are those of the record.
    """

    name: str
    format: str
    label: str
    queries: int
    judgments: int
    duplicates: int
    dangling: int | None
    grades: Mapping[int, int]
    slices: Mapping[str, int]
    first: tuple[QueryRecord, ...]
    warnings: tuple[str, ...]


def preview(record: DatasetRecord) -> Preview:
    """Return what importing `record` would keep. Raises `DatasetError` for what could not be kept."""
    check(record)
    grades = Counter(judgment.grade for query in record.queries for judgment in query.judgments)
    slices = Counter(name for query in record.queries for name in query.slices)
    return Preview(
        name=record.name,
        format=record.source_format,
        label=record.label,
        queries=len(record.queries),
        judgments=grades.total(),
        duplicates=record.duplicates,
        dangling=record.dangling,
        grades=dict(sorted(grades.items(), reverse=True)),
        slices=dict(sorted(slices.items())),
        first=tuple(record.queries[:FIRST]),
        warnings=warnings_of(record),
    )
