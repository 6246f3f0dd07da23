"""Export of a dataset version, as files of one of the formats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO

from django.utils.text import slugify

from apps.datasets.formats.registry import WRITERS, Format
from apps.datasets.formats.writing import WriteError, describe_losses
from apps.datasets.models import DatasetVersion
from apps.datasets.records import JUDGMENT_FIELDS, QUERY_FIELDS, DatasetRecord, JudgmentRecord, QueryRecord
from benchbench.local_files.placing import (
    Files,
    Piece,
    write_directory,
    write_file,
    write_file_pieces,
    write_pieces,
    write_zip,
)
from benchbench.reading.strict_json import attributes


@dataclass(frozen=True)
class DatasetExport:
    """A dataset ready to be written once. `name` is its default file name; a directory's is that of a zip.

    `record` is the part that the format can hold. `warnings` name the missing parts, and reasons why the reader may
    refuse the file.
    """

    writer: Format
    record: DatasetRecord
    name: str
    warnings: tuple[str, ...]
    extra_files: Mapping[str, Iterable[Piece]] = field(default_factory=dict)

    @property
    def files(self) -> Files:
        return {**self.writer.files(self.record), **self.extra_files}

    def write(self, file: IO[bytes]) -> None:
        """Write the one file, or a zip of the directory."""
        if self.writer.extension:
            (pieces,) = self.files.values()
            write_pieces(pieces, file)
        else:
            write_zip(self.files, file)

    def save(self, path: Path, *, force: bool = False) -> Path:
        """Write to `path` and return the path written. In a folder `path`, a single file gets its default name.

        A single file is compressed if `path` ends in .gz. A directory becomes a zip if `path` ends in .zip, else a new
        directory. It appears when it is complete. Raises OutputError, and the errors of the format.
        """
        if not self.writer.extension:
            if path.suffix == ".zip":
                write_file(self.write, path, force=force)
            else:
                write_directory(self.files, path)
            return path
        path = path / self.name if path.is_dir() else path
        (pieces,) = self.files.values()
        write_file_pieces(pieces, path, force=force)
        return path


def record_of(version: DatasetVersion) -> DatasetRecord:
    """Return a stored version, frozen or draft, as a record like those of readers."""
    rows = version.judgments.order_by("query_id", "id").iterator(chunk_size=10_000)
    judged = {
        query_id: [JudgmentRecord(**attributes(row, *JUDGMENT_FIELDS)) for row in group]
        for query_id, group in groupby(rows, key=lambda row: row.query_id)
    }
    dataset = version.dataset
    return DatasetRecord(
        name=dataset.name,
        queries=[
            QueryRecord(judgments=judged.get(query.pk, []), **attributes(query, *QUERY_FIELDS))
            for query in version.queries.order_by("id")
        ],
        label=version.label,
        **attributes(dataset, "description", "metadata", "slice_definitions", "source_format"),
    )


def export_record(record: DatasetRecord, format: str, *, name: str, extra_files: Files | None = None) -> DatasetExport:
    """Return a dataset in a format of WRITERS. A directory also gets the additional files, if given.

    Raises WriteError for content that the format would distort.
    """
    writer = WRITERS.get(format)
    if writer is None:
        raise WriteError(f"Unknown dataset format {format!r}: choose one of {', '.join(WRITERS)}.", field="format")
    fitted_record = writer.fit(record)
    if not fitted_record.queries:
        raise WriteError(f"{writer.label}: the format cannot hold any of the queries.", field="format")
    return DatasetExport(
        writer,
        fitted_record,
        f"{slugify(name) or 'dataset'}.{writer.extension or 'zip'}",
        (*describe_losses(record, fitted_record, label=writer.label), *writer.cautions(fitted_record)),
        extra_files or {},
    )
