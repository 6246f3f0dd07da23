"""Uploads of datasets."""

from collections.abc import Collection, Mapping

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from apps.datasets.readers import read_dataset
from apps.datasets.records import DatasetRecord
from benchbench.files.archives import require_unpacked_size
from benchbench.site.pages import stored


def read_upload(
    upload: UploadedFile,
    *,
    format: str = "",
    split: str = "",
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
) -> DatasetRecord:
    """Return the dataset that an uploaded file states; the options are those of `read_dataset`.

    A dataset is in memory as a whole: one that unpacks to more than BENCHMARK_DATASET_MAX_UNPACKED_BYTES is refused.
    """
    with stored(upload) as path:
        most = settings.BENCHMARK_DATASET_MAX_UNPACKED_BYTES
        require_unpacked_size(path, max_bytes=most)
        return read_dataset(path, format=format, split=split, columns=columns, ignore=ignore, max_bytes=most)
