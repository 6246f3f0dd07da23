"""Exporting the results of a benchmark or a run in one of the formats."""

from collections.abc import Iterator
from pathlib import Path

from apps.benchmarks.models import Benchmark, Run
from apps.datasets.models import DatasetVersion
from apps.operations.models import Status
from apps.results.exporters import EXPORTERS
from apps.results.exporters.base import Exporter, ExportError, ExportStateError, Piece, slug_of
from apps.results.leaderboard.runs import evaluations_of
from apps.results.leaderboard.versions import version_with_values
from benchbench.local_files.placing import make_folder, place_directory, place_pieces

NOT_ENDED = (Status.PENDING, Status.RUNNING)


def exporters_of(subject: Benchmark | Run) -> list[Exporter]:
    """Return the formats that `subject` can be written in."""
    kind = "benchmark" if isinstance(subject, Benchmark) else "run"
    return [exporter for exporter in EXPORTERS.values() if exporter.exports == kind]


def export(subject: Benchmark | Run, format: str, *, version: int | None = None) -> Iterator[Piece]:
    """Yield `subject` in the format of that name, as text or bytes; text is to be written as UTF-8.

    Its values are those on dataset version `version`, by default the benchmark's own. Raises ExportError at once for a
    format that is not one of its own and for a benchmark that has not ended, and while it yields where the results do
    not fit the format: keep nothing of what came before; NoValuesError for a version without values.
    """
    return _exporter(subject, format).write(subject, version_of(subject, version))


def _exporter(subject: Benchmark | Run, format: str) -> Exporter:
    """Return the exporter of that name, where `subject` can be written by it."""
    exporter = EXPORTERS.get(format)
    own = exporters_of(subject)
    if exporter not in own:
        kind = "benchmark" if isinstance(subject, Benchmark) else "run"
        there = ", ".join(other.name for other in own)
        if exporter is not None:
            raise ExportError(f"The format {format} is of a {exporter.exports}; of a {kind} there is {there}.")
        raise ExportError(f"There is no format {format!r}; of a {kind} there is {there}.", field="format")
    if isinstance(subject, Benchmark) and subject.status in NOT_ENDED:
        raise ExportStateError(f'The benchmark "{subject}" is {subject.status}: export it once it has ended.')
    return exporter


def version_of(subject: Benchmark | Run, number: int | None) -> DatasetVersion:
    """Return the version that exports are of: `number` of the dataset, where there are values on it, or the own one."""
    return version_with_values(subject if isinstance(subject, Benchmark) else subject.benchmark, number)


def export_to(
    subject: Benchmark | Run, format: str, path: Path, *, version: int | None = None, force: bool = False
) -> Path:
    """Write the export to `path`, or under its usual name into the folder `path`, and return where it is.

    The file appears when it is whole, packed where its name ends in .gz. One that is there already is only replaced
    with `force`. A format that is a directory becomes one in the folder `path`, which is made where it is missing and
    where nothing is replaced; or a zip where `path` ends in .zip. Raises ExportError and OutputError.
    """
    exporter, of_version = _exporter(subject, format), version_of(subject, version)
    name = file_name(subject, exporter, version=version)
    if exporter.files is not None and path.suffix != ".zip":
        make_folder(path)
        path = path / name.removesuffix(f".{exporter.extension}")
        place_directory(exporter.files(subject, of_version), path)
        return path
    path = path / name if path.is_dir() else path
    place_pieces(exporter.write(subject, of_version), path, force=force)
    return path


def file_name(subject: Benchmark | Run, exporter: Exporter, *, version: int | None = None) -> str:
    """Return what a file with this export is usually called: "which-mode.run-2.csv", or "which-mode.v3.csv" where the
    values are not on the benchmark's own version."""
    if exporter.file_name is not None:
        return exporter.file_name(subject, version_of(subject, version))
    benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
    parts = [slug_of(benchmark)]
    parts += [] if isinstance(subject, Benchmark) else [f"run-{subject.run_order}"]
    parts += [] if version in (None, benchmark.dataset_version.number) else [f"v{version}"]
    return ".".join([*parts, exporter.extension])


def lost_failures(subject: Benchmark | Run, exporter: Exporter, *, version: int | None = None) -> str:
    """Return the sentence that queries have no results and the format cannot say so; nothing where all is told."""
    if exporter.marks_failures or isinstance(subject, Benchmark):
        return ""
    evaluation = evaluations_of(subject.benchmark, version=version_of(subject, version)).get(subject.pk)
    failed = evaluation.failed_queries + evaluation.unsearched_queries if evaluation else 0
    if not failed:
        return ""
    what = "failed or had never been asked" if evaluation and evaluation.unsearched_queries else "failed"
    said = f"1 query of the run {what} and is" if failed == 1 else f"{failed:,} queries of the run {what} and are"
    return f"{said} not in this file, whose format cannot mark them: a tool that counts what is missing as 0 is wrong."
