"""Reading of datasets: the format of a source by its content, and the reader of that format."""

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.datasets.formats.pairs import DOCUMENTS, PAGES, TOGETHER, list_files, sniff_roles
from apps.datasets.formats.registry import FORMATS
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.decimals import list_some
from benchbench.files.archives import describe_binary, gathered
from benchbench.files.documents import find_root
from benchbench.files.encodings import in_utf8
from benchbench.files.sniffing import Kind, SwappedError, holds_documents, sniff
from benchbench.reading.strict_json import read_chunks, read_lines

# Sources that are only a part of a dataset, or not a dataset, with the remedy.
QUERIES_ALONE = f"holds queries without judgments. Give the file of their judgments too: {TOGETHER}"
PARTIAL_KINDS: dict[Kind, str] = {
    "trec-topics": QUERIES_ALONE,
    "beir-lines": QUERIES_ALONE,
    "beir-qrels": f"holds judgments without texts of queries. Give the file of the queries too: {TOGETHER}. If its "
    "first column holds their texts, choose the format table",
    "trec-run": "is a TREC run, which holds no judgment",
    "flowbaby-run": "is a Flowbaby run, which holds no judgment",
    "flowbaby-topics": f"is a part of a Flowbaby dataset. Give its other files too: {TOGETHER}",
    "flowbaby-qrels": f"is a part of a Flowbaby dataset. Give its other files too: {TOGETHER}",
    "sectioned-document": "is a document: import its directory as a collection",
}
MOST_FILES = 3  # of a folder that an error describes
NUMBERS = ".numbers"


def detect(path: Path) -> str:
    """Return the format of the dataset at `path`. Raises an error if it holds only a part of a dataset, or none."""
    return _locate(path, {})[0]


def _locate(path: Path, options: Mapping[str, object]) -> tuple[str, Path]:
    """Return the format of the dataset at `path`, and the file or folder in it that holds the dataset."""
    if path.is_dir():
        return _locate_in(path, options)
    if binary := describe_binary(path):
        raise DatasetError(f"{path.name} {binary}.")
    kind = sniff(path)
    if format_name := find_format(kind):
        return format_name, path
    if path.suffix.lower() == NUMBERS:
        raise DatasetError(f"{path.name} is a workbook of Numbers: export it as .xlsx, and import that.")
    if (kind == "beir-lines" and holds_documents(path)) or (not kind and find_root(path)):
        raise SwappedError(f"{path.name} {DOCUMENTS}.")
    if kind in PARTIAL_KINDS:
        raise DatasetError(f"{path.name} {PARTIAL_KINDS[kind]}.", field="format")
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return "benchbench-json", path
    if not any(chunk.removeprefix(BOM_UTF8).strip() for chunk in read_chunks(path)):
        raise DatasetError(f"{path.name} is empty.")
    raise DatasetError(
        f"{path.name} has no known format: name its format, one of "
        f"{', '.join(sorted(name for name, format in FORMATS.items() if format.kind))}.",
        field="format",
    )


def find_format(kind: Kind) -> str:
    """Return the format whose files have a kind; "" for none."""
    return next((name for name, format in FORMATS.items() if kind and format.kind == kind), "")


def _locate_in(directory: Path, options: Mapping[str, object]) -> tuple[str, Path]:
    marks = {name: format.mark for name, format in FORMATS.items() if format.mark}
    files = list_files(directory)
    for name, mark in marks.items():
        marked = [file.parent for file in files if file.name.removesuffix(".gz") == mark]
        if len(marked) == 1 and (name != "beir" or (marked[0] / "qrels").is_dir()):
            return name, marked[0]
    roles = sniff_roles(directory, options)
    if {"queries", "judgments"} <= {role for _, role in roles.values()}:
        kinds = sorted(kind for kind, role in roles.values() if role)
        return "trec" if kinds == ["trec-qrels", "trec-topics"] else "two-files", directory
    complete = [(name, file) for file, (kind, role) in roles.items() if not role and (name := find_format(kind))]
    if len(complete) == 1:
        return complete[0]
    if complete:
        names = ", ".join(file.name for _, file in complete)
        raise DatasetError(f"{directory.name} holds several datasets: {names[:200]}. Leave all but one out.")
    if len(roles) == 1:
        return _locate(files[0], options)
    pages = [path for path in directory.rglob("*") if path.suffix.lower() in (*PAGES, ".txt")]
    if (pages and not files) or (len(pages) > 2 and not any(kind or role for kind, role in roles.values())):
        raise SwappedError(f"{directory.name} {DOCUMENTS}.")
    raise DatasetError(
        f"{directory.name} holds no dataset: looked for {', '.join(marks.values())}, a file of queries with one of "
        f"judgments, and a table.{_describe_files(roles)}",
        field="format",
    )


def _describe_files(roles: Mapping[Path, tuple[Kind, str]]) -> str:
    """Return sentences on the first files of a folder: what they hold, or how those begin that hold nothing known."""
    sentences = []
    for path, (kind, role) in [*roles.items()][:MOST_FILES]:
        content = describe_binary(path) or f"is {role or kind}"
        if content == "is ":
            begins = next((line for _, line in read_lines(path)), "")[:60]
            content = f'is not recognised: it begins "{begins}"' if begins else "is empty"
        sentences.append(f" {path.name} {content}.")
    if any("not recognised" in sentence for sentence in sentences):
        sentences.append(
            " A file of queries has an id, a tab and a text on each line; one of judgments a query's id, a document "
            "and a grade, or TREC's four columns. Tables have a header."
        )
    return "".join(sentences)


def _locate_as(format: str, path: Path) -> tuple[str, Path]:
    """Return a format that the user names, and the file of that format if `path` is a directory with one."""
    if not path.is_dir() or format not in FORMATS:
        return format, path
    if format == "beir" and not (path / "qrels").is_dir():
        return "two-files", path
    files = [] if FORMATS[format].directory else list_files(path)
    likely = [file for file in files if sniff(file) == FORMATS[format].kind] if len(files) > 1 else files
    return format, likely[0] if len(likely) == 1 else path


def read_dataset(
    source: Path | Sequence[Path],
    *,
    format: str = "",
    is_upload: bool = False,
    **options: Any,
) -> DatasetRecord:
    """Return the dataset of a file, a directory or a zip, or of several files; without a format, `detect` finds it.

    A zip may unpack to BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES. With `is_upload` the limits are smaller: a zip may unpack to
    BENCHMARK_DATASET_MAX_UNPACKED_BYTES, and a file may have BENCHMARK_DATASET_MAX_ROWS lines. JSON has no lines: its
    objects are limited by their bytes.

    Further `options` are those of the format's reader, less the empty ones: `split` of formats that have splits,
    `topics` of TREC judgments, `columns` and those to `ignore` of tables, `sample` and `seed` of logs of queries,
    `grade_factor` of ratings of other tools and of tables.
    """
    paths = [source] if isinstance(source, Path) else source
    for path in paths:
        if not path.exists():
            raise DatasetError(f"{path} does not exist.")
    chosen_options = {name: value for name, value in options.items() if value}
    limit = "BENCHMARK_DATASET_MAX_UNPACKED_BYTES" if is_upload else "BENCHBENCH_CORPUS_MAX_UPLOAD_BYTES"
    with gathered(paths, max_bytes=getattr(settings, limit)) as gathered_path, in_utf8(gathered_path) as (path, notes):
        if is_upload:
            _require_rows(path, settings.BENCHMARK_DATASET_MAX_ROWS)
        format, located = _locate_as(format, path) if format else _locate(path, chosen_options)
        if path.is_dir() and located.is_file() and (unread := [f.name for f in list_files(path) if f != located]):
            notes = [*notes, f"Files that are not read: {list_some(unread)}."]
        return _read(located, format, chosen_options, is_upload, notes)


def _read(
    path: Path, format: str, chosen_options: Mapping[str, object], is_upload: bool, notes: Sequence[str]
) -> DatasetRecord:
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
