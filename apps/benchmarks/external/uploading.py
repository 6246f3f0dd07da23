"""Uploads of external runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from benchbench.files.archives import require_unpacked_size
from benchbench.site.pages import stored


@contextmanager
def stored_run(upload: UploadedFile) -> Iterator[Path]:
    """Keep an uploaded file of rankings while the block runs.

    Raises FileFormatError where it unpacks to more than BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES.
    """
    with stored(upload) as path:
        require_unpacked_size(path, max_bytes=settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES)
        yield path
