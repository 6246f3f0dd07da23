"""Reading datasets: one file for each format, and one line in `formats`.

Each is told by its content (`detecting`), and is one of `writers` too.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from django.conf import settings

from apps.datasets.readers.detecting import detect
from apps.datasets.readers.formats import FORMATS
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.files.archives import unpacked


def read_dataset(
    path: Path,
    *,
    format: str = "",
    split: str = "",
    topics: Path | None = None,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    max_bytes: int | None = None,
) -> DatasetRecord:
    """Return the dataset at `path`, a file or a directory, or a zip of it; without a format, `detect` tells it.

    A zip may unpack to `max_bytes`, by default BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES.

    `split` is for formats that have splits, `topics` for TREC judgments, `columns` and those to `ignore` for tables.
    """
    if not path.exists():
        raise DatasetError(f"{path} does not exist.")
    options = {"split": split, "topics": topics, "columns": columns, "ignore": ignore}
    given = {name: value for name, value in options.items() if value}
    if path.suffix == ".zip":
        most = max_bytes or settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES
        with unpacked(path, max_bytes=most) as directory:
            return _read(directory, format, given)
    return _read(path, format, given)


def _read(path: Path, format: str, given: Mapping[str, object]) -> DatasetRecord:
    format = format or detect(path)
    for name in given:
        if name not in FORMATS[format].options:
            many = {"split": "splits", "ignore": "columns"}.get(name, name)
            raise DatasetError(f"The format {format} has no {many}: leave the {name} out.", field=name)
    return FORMATS[format].read(path, **given)
