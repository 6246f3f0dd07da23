"""Reading datasets: one file for each format, and one line in `formats`.

`detecting` tells a format by its content; `writers` writes some of them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from apps.datasets.readers.detecting import detect
from apps.datasets.readers.formats import FORMATS
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.files.archives import unpacked
from benchbench.reading.strict_json import raw_chunks


@dataclass(frozen=True, slots=True)
class Limits:
    """What a dataset may hold at most, unpacked. JSON has no rows: its objects are limited by their bytes."""

    unpacked_bytes: int
    rows: int


def read_dataset(
    path: Path,
    *,
    format: str = "",
    split: str = "",
    topics: Path | None = None,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    limits: Limits | None = None,
) -> DatasetRecord:
    """Return the dataset at `path`, a file or a directory, or a zip of it; without a format, `detect` tells it.

    Without limits a zip may unpack to BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES.

    `split` is for formats that have splits, `topics` for TREC judgments, `columns` and those to `ignore` for tables.
    """
    if not path.exists():
        raise DatasetError(f"{path} does not exist.")
    options = {"split": split, "topics": topics, "columns": columns, "ignore": ignore}
    given = {name: value for name, value in options.items() if value}
    if path.suffix == ".zip":
        most = limits.unpacked_bytes if limits else settings.BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES
        with unpacked(path, max_bytes=most) as directory:
            return _read(directory, format, given, limits)
    return _read(path, format, given, limits)


def _read(path: Path, format: str, given: Mapping[str, object], limits: Limits | None) -> DatasetRecord:
    if limits:
        _require_rows(path, limits.rows)
    format = format or detect(path)
    for name in given:
        if name not in FORMATS[format].options:
            many = {"split": "splits", "ignore": "columns"}.get(name, name)
            raise DatasetError(f"The format {format} has no {many}: leave the {name} out.", field=name)
    return FORMATS[format].read(path, **given)


def _require_rows(path: Path, most: int) -> None:
    """Raise where the files at `path` have more than `most` lines, those of JSON left out."""
    rows = 0
    for file in [path] if path.is_file() else filter(Path.is_file, path.rglob("*")):
        chunks = raw_chunks(file)
        first = next(chunks, b"")
        if first.lstrip()[:1] in (b"{", b"["):
            continue
        rows += first.count(b"\n") + sum(chunk.count(b"\n") for chunk in chunks)
        if rows > most:
            raise DatasetError(
                f"The dataset has more than {most:,} lines (BENCHMARK_DATASET_MAX_ROWS), the most that is read from an "
                "upload. Take fewer judgments, or have it imported by the command import_dataset, which has no limit."
            )
