"""The registry of formats of datasets: its members, detection by content, and reading of any format."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.datasets.formats import beir, flowbaby, schema1_writing, trec
from apps.datasets.formats.module_queries import read_module_queries
from apps.datasets.formats.opensearch import read_judgment_list, read_query_set
from apps.datasets.formats.quepid import read_ratings, read_snapshot_ratings
from apps.datasets.formats.query_log import read_log
from apps.datasets.formats.rank_eval import read_rank_eval
from apps.datasets.formats.schema1 import read_schema1
from apps.datasets.formats.sectioned import read_sectioned
from apps.datasets.formats.table import read_table_of_judgments
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.files.archives import unpacked
from benchbench.files.encodings import in_utf8
from benchbench.files.sniffing import Kind, sniff
from benchbench.local_files.placing import Files
from benchbench.reading.strict_json import read_chunks

JSON, ZIP = "application/json", "application/zip"


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of datasets: its name for users, its reader, the marks of a source, and its writer.

    `file` and `directory` describe in words what holds a whole dataset. A file is recognised by its `kind`, a directory
    by a file called `mark`, or of that kind. `options` are the keywords that `read` takes after the path.

    A format with a `content_type` has a writer. `fit` returns the part of a dataset that the format can hold and its
    reader would read back. It leaves out the rest, and raises WriteError for content that would be distorted. `files`
    writes a dataset that fits: one file with `extension`, or the files of a directory by relative name. `cautions`
    yields sentences about written content that the reader would refuse.
    """

    label: str
    read: Callable[..., DatasetRecord]
    file: str = ""
    kind: Kind = ""
    directory: str = ""
    mark: str = ""
    options: tuple[str, ...] = ()
    content_type: str = ""
    extension: str = ""
    fit: Callable[[DatasetRecord], DatasetRecord] = lambda record: record
    files: Callable[[DatasetRecord], Files] = lambda record: {}
    cautions: Callable[[DatasetRecord], Iterable[str]] = lambda record: ()


FORMATS: dict[str, Format] = {
    "benchbench-json": Format(
        label="BenchBench JSON, schema 1.0",
        read=read_schema1,
        file="JSON of schema 1.0",
        kind="benchbench-json",
        content_type=JSON,
        extension="json",
        fit=schema1_writing.fit,
        files=schema1_writing.build_files,
        cautions=schema1_writing.yield_cautions,
    ),
    "beir": Format(
        label="BEIR directory",
        read=beir.read_beir,
        directory="BEIR (queries.jsonl, qrels/SPLIT.tsv)",
        mark="queries.jsonl",
        options=("split",),
        content_type=ZIP,
        fit=beir.fit,
        files=beir.build_files,
    ),
    "trec": Format(
        label="TREC judgments and topics",
        read=trec.read_trec,
        kind="trec-qrels",
        directory="TREC judgments with their topics",
        options=("topics",),
        content_type=ZIP,
        fit=trec.fit,
        files=trec.build_files,
    ),
    "flowbaby": Format(
        label="Flowbaby directory",
        read=flowbaby.read_flowbaby,
        directory="Flowbaby (topics.json, qrels.json)",
        mark="topics.json",
        options=("split",),
        content_type=ZIP,
        fit=flowbaby.fit,
        files=flowbaby.build_files,
    ),
    "sectioned": Format(
        label="Sectioned ground truth",
        read=read_sectioned,
        file="ground_truth.json",
        kind="ground-truth",
        directory="ground_truth.json with its documents/",
        mark="ground_truth.json",
    ),
    "module-queries": Format(
        label="Module queries (SPEC-001)",
        read=read_module_queries,
        file="module queries (SPEC-001)",
        kind="module-queries",
    ),
    "query-log": Format(
        label="Log of queries",
        read=read_log,
        file="a log of queries (text, count)",
        kind="query-log",
        options=("columns", "sample", "seed"),
    ),
    "table": Format(
        label="CSV or JSON Lines",
        read=read_table_of_judgments,
        file="CSV or JSON Lines with a row for each judgment",
        kind="table",
        options=("columns", "ignore", "grade_factor", "is_lenient"),
    ),
}
RATED: tuple[tuple[Kind, str, Callable[..., DatasetRecord], tuple[str, ...]], ...] = (
    ("quepid-ratings", "Quepid ratings (CSV: query, docid, rating)", read_ratings, ("grade_factor",)),
    ("quepid-snapshot", "Quepid snapshot (JSON)", read_snapshot_ratings, ("grade_factor",)),
    ("rank-eval", "_rank_eval body", read_rank_eval, ("grade_factor", "columns")),
    ("opensearch-judgments", "OpenSearch judgment list", read_judgment_list, ("grade_factor",)),
    ("opensearch-queries", "OpenSearch query set", read_query_set, ()),
)
for _name, _label, _read_rated, _options in RATED:
    FORMATS[_name] = Format(label=_label, read=_read_rated, file=_label, kind=_name, options=_options)
FILES = "; ".join(format.file for format in FORMATS.values() if format.file)
DIRECTORIES = "; ".join(format.directory for format in FORMATS.values() if format.directory)
SOURCES = f"A file: {FILES}. Or a zip of a directory: {DIRECTORIES}. Any file may be compressed (.gz)."
WRITERS = {name: format for name, format in FORMATS.items() if format.content_type}

# Sources that are only a part of a dataset, or not a dataset, with the remedy.
PARTIAL_KINDS: dict[Kind, str] = {
    "trec-topics": "holds the topics of TREC without judgments: import the file of judgments and name this one as its "
    "topics, or import the directory of both",
    "trec-run": "is a TREC run, which holds no judgment",
    "flowbaby-run": "is a Flowbaby run, which holds no judgment",
    "flowbaby-topics": "is a part of a Flowbaby dataset: import the directory that holds it, or a zip of that",
    "flowbaby-qrels": "is a part of a Flowbaby dataset: import the directory that holds it, or a zip of that",
    "beir-lines": "is a part of a BEIR dataset: import the directory that holds it, or a zip of that",
    "beir-qrels": "is a part of a BEIR dataset: import the directory that holds it, or a zip of that",
    "sectioned-document": "is a document: import its directory as a collection",
}


def detect(path: Path) -> str:
    """Return the format of the dataset at `path`. Raises an error if it holds only a part of a dataset, or none."""
    if path.is_dir():
        return _detect_directory(path)
    kind = sniff(path)
    if format_name := next((name for name, format in FORMATS.items() if kind and format.kind == kind), ""):
        return format_name
    if kind in PARTIAL_KINDS:
        raise DatasetError(f"{path.name} {PARTIAL_KINDS[kind]}.", field="format")
    if path.name.removesuffix(".gz").endswith(".json"):
        return "benchbench-json"
    if not any(chunk.strip() for chunk in read_chunks(path)):
        raise DatasetError(f"{path.name} is empty.")
    raise DatasetError(
        f"{path.name} has no known format: name its format, one of "
        f"{', '.join(sorted(name for name, format in FORMATS.items() if format.kind))}.",
        field="format",
    )


def _detect_directory(directory: Path) -> str:
    marks = {name: format.mark for name, format in FORMATS.items() if format.mark}
    for name, mark in marks.items():
        if any((directory / f"{mark}{ending}").is_file() for ending in ("", ".gz")):
            return name
    if any(path.is_file() and sniff(path) == FORMATS["trec"].kind for path in sorted(directory.iterdir())):
        return "trec"
    raise DatasetError(
        f"{directory} holds no dataset: looked for {', '.join(marks.values())}, and a file of TREC judgments.",
        field="format",
    )


def read_dataset(
    path: Path,
    *,
    format: str = "",
    is_upload: bool = False,
    **options: Any,
) -> DatasetRecord:
    """Return the dataset at `path`, a file or a directory, or a zip of it; without a format, `detect` finds it.

    A zip may unpack to BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES. With `is_upload` the limits are smaller: a zip may unpack to
    BENCHMARK_DATASET_MAX_UNPACKED_BYTES, and a file may have BENCHMARK_DATASET_MAX_ROWS lines. JSON has no lines: its
    objects are limited by their bytes.

    Further `options` are those of the format's reader, less the empty ones: `split` of formats that have splits,
    `topics` of TREC judgments, `columns` and those to `ignore` of tables, `sample` and `seed` of logs of queries,
    `grade_factor` of ratings of other tools.
    """
    if not path.exists():
        raise DatasetError(f"{path} does not exist.")
    chosen_options = {name: value for name, value in options.items() if value}
    if path.suffix == ".zip":
        limit = "BENCHMARK_DATASET_MAX_UNPACKED_BYTES" if is_upload else "BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES"
        with unpacked(path, max_bytes=getattr(settings, limit)) as directory:
            return _read(directory, format, chosen_options, is_upload)
    return _read(path, format, chosen_options, is_upload)


def _read(path: Path, format: str, chosen_options: Mapping[str, object], is_upload: bool) -> DatasetRecord:
    with in_utf8(path) as (path, notes):
        if is_upload:
            _require_rows(path, settings.BENCHMARK_DATASET_MAX_ROWS)
        format = format or detect(path)
        for name in chosen_options:
            if name not in FORMATS[format].options:
                many = {"split": "splits", "ignore": "columns"}.get(name, name).replace("_", " ")
                raise DatasetError(
                    f"The format {format} has no {many}: leave the {name.replace('_', ' ')} out.", field=name
                )
        lenient = {"is_lenient": True} if is_upload and "is_lenient" in FORMATS[format].options else {}
        record = FORMATS[format].read(path, **chosen_options, **lenient)
        return replace(record, warnings=[*notes, *record.warnings]) if notes else record


def _require_rows(path: Path, cap: int) -> None:
    """Raise an error if the files at `path`, except JSON, have more than `cap` lines."""
    rows = 0
    for file in [path] if path.is_file() else filter(Path.is_file, path.rglob("*")):
        chunks = read_chunks(file)
        first = next(chunks, b"")
        if first.lstrip()[:1] in (b"{", b"["):
            continue
        rows += first.count(b"\n") + sum(chunk.count(b"\n") for chunk in chunks)
        if rows > cap:
            raise DatasetError(
                f"The dataset has more than {cap:,} lines (BENCHMARK_DATASET_MAX_ROWS), the limit for uploads. "
                f"Remove judgments, or ask an administrator to run import_dataset, which has no limit."
            )
