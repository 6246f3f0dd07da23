"""Write the results of a benchmark or a run in one of the formats."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from django.utils.text import slugify

from apps.benchmarks.models import Benchmark, Run
from apps.operations.models import Status
from apps.results.exporters import EXPORTERS
from apps.results.exporters.base import Exporter, ExportError, Piece

NOT_ENDED = (Status.PENDING, Status.RUNNING)


def exporters_of(subject: Benchmark | Run) -> list[Exporter]:
    """Return the formats that `subject` can be written in."""
    kind = "benchmark" if isinstance(subject, Benchmark) else "run"
    return [exporter for exporter in EXPORTERS.values() if exporter.exports == kind]


def export(subject: Benchmark | Run, format: str) -> Iterator[Piece]:
    """Yield `subject` in the format of that name, as text or bytes; text is to be written as UTF-8.

    Raises ExportError at once for a format that is not one of its own and for a benchmark that has not ended, and while
    it yields where the results do not fit the format: keep nothing of what came before.
    """
    exporter = EXPORTERS.get(format)
    own = exporters_of(subject)
    if exporter not in own:
        kind = "benchmark" if isinstance(subject, Benchmark) else "run"
        there = ", ".join(one.name for one in own)
        if exporter is not None:
            raise ExportError(f"The format {format} is of a {exporter.exports}; of a {kind} there is {there}.")
        raise ExportError(f"There is no format {format!r}; of a {kind} there is {there}.", field="format")
    if isinstance(subject, Benchmark) and subject.status in NOT_ENDED:
        raise ExportError(f'The benchmark "{subject}" is {subject.status}: export it once it has ended.')
    return exporter.write(subject)


def export_to(subject: Benchmark | Run, format: str, path: Path, *, force: bool = False) -> Path:
    """Write the export to `path`, or under its usual name into the folder `path`, and return where it is.

    The file appears when it is whole. One that is there already is only replaced with `force`. Raises ExportError.
    """
    pieces = export(subject, format)
    path = path / file_name(subject, EXPORTERS[format]) if path.is_dir() else path
    if path.exists() and not force:
        raise ExportError(f"{path} exists already: choose another --output, or give --force to replace it.")
    try:
        part = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from None
    try:
        with part:
            write_pieces(pieces, part)
        os.chmod(part.name, 0o666 & ~_umask())
        (os.replace if force else os.link)(part.name, path)
    except FileExistsError:
        raise ExportError(f"{path} exists already: choose another --output, or give --force to replace it.") from None
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        Path(part.name).unlink(missing_ok=True)
    return path


def write_pieces(pieces: Iterator[Piece], file: IO[bytes]) -> None:
    for piece in pieces:
        file.write(piece.encode() if isinstance(piece, str) else piece)


def file_name(subject: Benchmark | Run, exporter: Exporter) -> str:
    """Return what a file with this export is usually called: "which-mode.run-2.csv"."""
    if exporter.file_name is not None:
        return exporter.file_name(subject)
    if isinstance(subject, Benchmark):
        return f"{_slug(subject)}.{exporter.extension}"
    return f"{_slug(subject.benchmark)}.run-{subject.run_order}.{exporter.extension}"


def lost_failures(subject: Benchmark | Run, exporter: Exporter) -> str:
    """Return the sentence that some queries failed and the format cannot say so; nothing where all is told."""
    if exporter.marks_failures or isinstance(subject, Benchmark) or not subject.failed_queries:
        return ""
    failed = subject.failed_queries
    said = "1 query of the run failed and is" if failed == 1 else f"{failed:,} queries of the run failed and are"
    return f"{said} not in this file, whose format cannot mark them: a tool that counts what is missing as 0 is wrong."


def _slug(benchmark: Benchmark) -> str:
    return slugify(benchmark.name) or "benchmark"


def _umask() -> int:
    """The umask can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
