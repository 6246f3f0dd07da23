"""Exporting the results of a benchmark or a run in one of the formats."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from apps.datasets.models import DatasetVersion
from apps.operations.models import Status
from apps.records.models import Benchmark, Run
from apps.results.exporters import documents, flowbaby, report, results_json, spec002, strategy, tables
from apps.results.exporters.outcomes import ExportError, ExportStateError, build_slug
from apps.results.exporters.tables import write_csv, write_excel, yield_queries, yield_run, yield_runs
from apps.results.leaderboard.versions import load_scored_version
from apps.verdicts.ranked_runs import load_evaluations
from benchbench.files.workbooks import CONTENT_TYPE as XLSX
from benchbench.ir.profiles import FLOWBABY_1_0, FLOWBABY_1_1
from benchbench.local_files.placing import Files, Piece, make_folder, write_directory, write_file_pieces, write_pieces

NOT_ENDED = (Status.PENDING, Status.RUNNING)


@dataclass(frozen=True, slots=True)
class Exporter:
    """A format of results. `write` takes a benchmark or run, per `exports`, and a dataset version, and yields the file.

    It may raise an ExportError at any piece, so discard the pieces unless it ends. `marks_failures`: whether the format
    can mark failed queries; if not, they are left out. `file_name`: for formats that prescribe one. `files`: for
    formats that are a directory, which `write` yields as a zip; write them in order, each completely before the next.
    """

    name: str
    title: str
    exports: Annotated[Literal["benchmark", "run"], "The kind of object that it exports."]
    content_type: str
    extension: str
    write: Callable[[Any, DatasetVersion], Iterator[Piece]]
    marks_failures: Annotated[bool, "Whether it can mark failed queries; if not, they are left out."] = True
    file_name: Callable[[Any, DatasetVersion], str] | None = None
    files: Callable[[Any, DatasetVersion], Files] | None = None


CSV, JSON, MARKDOWN, TEXT = "text/csv", "application/json", "text/markdown", "text/plain"
TEX = "application/x-tex"
_EXPORTER_LIST = (
    Exporter("json", "JSON, as in the API", "benchmark", JSON, "json", results_json.write),
    Exporter("csv", "CSV, one row per run", "benchmark", CSV, "csv", write_csv(yield_runs)),
    Exporter(
        "csv-queries", "CSV, one row per run and query", "benchmark", CSV, "queries.csv", write_csv(yield_queries)
    ),
    Exporter("xlsx", "Excel, one row per run", "benchmark", XLSX, "xlsx", write_excel(yield_runs)),
    Exporter(
        "xlsx-queries",
        "Excel, one row per run and query",
        "benchmark",
        XLSX,
        "queries.xlsx",
        write_excel(yield_queries),
    ),
    Exporter("markdown", "Markdown, for a pull request", "benchmark", MARKDOWN, "md", documents.write_markdown),
    Exporter("latex", "LaTeX table, significance marked", "benchmark", TEX, "tex", documents.write_latex),
    Exporter("html", "HTML, one self-contained file", "benchmark", "text/html", "html", report.write_html),
    Exporter("trec-qrels", "TREC qrels", "benchmark", TEXT, "qrels", tables.write_qrels),
    Exporter(
        "strategy",
        "Retrieval-strategy benchmark, several files",
        "benchmark",
        "application/zip",
        "zip",
        strategy.write,
        file_name=strategy.name_file,
        files=strategy.build_files,
    ),
    Exporter("csv-run", "CSV, one row per query", "run", CSV, "csv", write_csv(yield_run)),
    Exporter("xlsx-run", "Excel, one row per query", "run", XLSX, "xlsx", write_excel(yield_run)),
    Exporter("trec-run", "TREC run", "run", TEXT, "run", tables.write_trec_run, marks_failures=False),
    Exporter("spec-002", "SPEC-002 baseline", "run", JSON, "json", spec002.write, file_name=spec002.name_file),
    Exporter("flowbaby-run", "Flowbaby run.json", "run", JSON, "run.json", flowbaby.write_run, marks_failures=False),
    *(
        Exporter(
            f"flowbaby-{kind}-{profile.name.removeprefix('flowbaby-')}",
            f"Flowbaby {file}, profile {profile.name.removeprefix('flowbaby-')}, {profile.mean} mean",
            "run",
            content_type,
            f"{profile.name}.{file}",
            partial(write, profile=profile),
        )
        for profile in (FLOWBABY_1_1, FLOWBABY_1_0)
        for kind, file, content_type, write in (
            ("results", "results.json", JSON, flowbaby.write_results),
            ("markdown", "results.md", MARKDOWN, flowbaby.write_markdown),
            ("summary", "summary.json", JSON, flowbaby.write_summary),
        )
    ),
)
EXPORTERS = {exporter.name: exporter for exporter in _EXPORTER_LIST}


def list_exporters(subject: Benchmark | Run) -> list[Exporter]:
    """Return the formats for `subject`."""
    return [exporter for exporter in EXPORTERS.values() if exporter.exports == subject._meta.model_name]


def export(subject: Benchmark | Run, format: str, *, version: int | None = None) -> Iterator[Piece]:
    """Yield `subject` in the format with this name, as text or bytes; encode text as UTF-8.

    Its values are those on dataset version `version`, by default the benchmark's own. Raises ExportError at once for an
    unsuitable format and a benchmark that has not ended. Raises ExportError while yielding if the results do not fit
    the format; discard the earlier pieces then. Raises NoValuesError for a version without values.
    """
    return _find_exporter(subject, format).write(subject, load_version(subject, version))


def _find_exporter(subject: Benchmark | Run, format: str) -> Exporter:
    """Return the exporter with this name. Raises ExportError if `subject` cannot be exported with it now."""
    exporter = EXPORTERS.get(format)
    exporters = list_exporters(subject)
    if exporter not in exporters:
        kind = subject._meta.model_name
        names = ", ".join(candidate.name for candidate in exporters)
        if exporter is not None:
            raise ExportError(f"The format {format} exports a {exporter.exports}. For a {kind} choose one of {names}.")
        raise ExportError(f"The format {format!r} does not exist. For a {kind} choose one of {names}.", field="format")
    if isinstance(subject, Benchmark) and subject.status in NOT_ENDED:
        raise ExportStateError(f'The benchmark "{subject}" is {subject.status}: export it once it has ended.')
    return exporter


def load_version(subject: Benchmark | Run, number: int | None) -> DatasetVersion:
    """Return version `number` of the dataset, by default the benchmark's own. Raises NoValuesError without values."""
    return load_scored_version(subject if isinstance(subject, Benchmark) else subject.benchmark, number)


def build_export(
    subject: Benchmark | Run, format: str, *, version: int | None = None
) -> tuple[str, Callable[[IO[bytes]], None]]:
    """Return the file name of a benchmark or run in a format, and what writes the file."""
    pieces = export(subject, format, version=version)
    return name_file(subject, EXPORTERS[format], version=version), lambda file: write_pieces(pieces, file)


def export_to(
    subject: Benchmark | Run, format: str, path: Path, *, version: int | None = None, force: bool = False
) -> Path:
    """Write the export to the file `path`, or under its usual name into the folder `path`; return the path.

    The file appears only when complete, gzipped if its name ends in .gz. Only `force` replaces an existing file. A
    format that is a directory becomes a zip if `path` ends in .zip, else a directory in the folder `path`. That folder
    is created if missing, and nothing in it is replaced. Raises ExportError and OutputError.
    """
    exporter, of_version = _find_exporter(subject, format), load_version(subject, version)
    name = name_file(subject, exporter, version=version)
    if exporter.files is not None and path.suffix != ".zip":
        make_folder(path)
        path = path / name.removesuffix(f".{exporter.extension}")
        write_directory(exporter.files(subject, of_version), path)
        return path
    path = path / name if path.is_dir() else path
    write_file_pieces(exporter.write(subject, of_version), path, force=force)
    return path


def name_file(subject: Benchmark | Run, exporter: Exporter, *, version: int | None = None) -> str:
    """Return the usual file name of this export: "which-mode.run-2.csv".

    It is "which-mode.v3.csv" if the values are not on the benchmark's own version.
    """
    if exporter.file_name is not None:
        return exporter.file_name(subject, load_version(subject, version))
    benchmark = subject if isinstance(subject, Benchmark) else subject.benchmark
    segments = [build_slug(benchmark)]
    segments += [] if isinstance(subject, Benchmark) else [f"run-{subject.run_order}"]
    segments += [] if version in (None, benchmark.dataset_version.number) else [f"v{version}"]
    return ".".join([*segments, exporter.extension])


def describe_failures(subject: Benchmark | Run, exporter: Exporter, *, version: int | None = None) -> str:
    """Return a warning if queries of a run failed or were never asked and the format cannot mark them; else ""."""
    if exporter.marks_failures or isinstance(subject, Benchmark):
        return ""
    evaluation = load_evaluations(subject.benchmark, version=load_version(subject, version)).get(subject.pk)
    if evaluation is None or not (failed := evaluation.failed_queries + evaluation.unsearched_queries):
        return ""
    reason = "failed or were not run" if evaluation.unsearched_queries else "failed"
    clause = f"1 query of the run {reason} and is" if failed == 1 else f"{failed:,} queries of the run {reason} and are"
    return f"{clause} missing from this file, because the format cannot mark them: do not count missing queries as 0."
