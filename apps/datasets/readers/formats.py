"""The formats of datasets that are read: one line for each."""

from collections.abc import Callable
from dataclasses import dataclass

from apps.datasets.readers.beir import read_beir
from apps.datasets.readers.flowbaby import read_flowbaby
from apps.datasets.readers.module_queries import read_module_queries
from apps.datasets.readers.schema1 import read_schema1
from apps.datasets.readers.sectioned import read_sectioned
from apps.datasets.readers.table import read_table_of_judgments
from apps.datasets.readers.trec import read_trec
from apps.datasets.records import DatasetRecord
from benchbench.files.sniffing import Kind


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of datasets: the name that people know it by, its reader, and how it is told.

    `file` and `directory` say in words what holds a whole dataset. A file is told by its `kind`, a directory by a file
    called `mark`, or of that kind. `options` are the keywords that `read` takes besides the path.
    """

    label: str
    read: Callable[..., DatasetRecord]
    file: str = ""
    kind: Kind = ""
    directory: str = ""
    mark: str = ""
    options: tuple[str, ...] = ()


FORMATS = {
    "benchbench-json": Format(
        label="BenchBench JSON, schema 1.0", read=read_schema1, file="JSON of schema 1.0", kind="benchbench-json"
    ),
    "beir": Format(
        label="BEIR directory",
        read=read_beir,
        directory="BEIR (queries.jsonl, qrels/SPLIT.tsv)",
        mark="queries.jsonl",
        options=("split",),
    ),
    "trec": Format(
        label="TREC judgments and topics",
        read=read_trec,
        kind="trec-qrels",
        directory="TREC judgments with their topics",
        options=("topics",),
    ),
    "flowbaby": Format(
        label="Flowbaby directory",
        read=read_flowbaby,
        directory="Flowbaby (topics.json, qrels.json)",
        mark="topics.json",
        options=("split",),
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
    "table": Format(
        label="CSV or JSON Lines",
        read=read_table_of_judgments,
        file="CSV or JSON Lines with a row for each judgment",
        kind="table",
        options=("columns", "ignore"),
    ),
}
FILES = "; ".join(format.file for format in FORMATS.values() if format.file)
DIRECTORIES = "; ".join(format.directory for format in FORMATS.values() if format.directory)
SOURCES = f"A file: {FILES}. Or a zip of a directory: {DIRECTORIES}. Any file may be packed (.gz)."
