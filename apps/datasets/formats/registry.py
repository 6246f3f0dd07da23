"""The registry of formats of datasets."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apps.datasets.formats import beir, flowbaby, schema1_writing, trec
from apps.datasets.formats.keyed import read_keyed
from apps.datasets.formats.module_queries import read_module_queries
from apps.datasets.formats.opensearch import read_judgment_list, read_query_set
from apps.datasets.formats.pairs import read_two_files
from apps.datasets.formats.quepid import read_ratings, read_snapshot_ratings
from apps.datasets.formats.query_log import read_log
from apps.datasets.formats.rank_eval import read_rank_eval
from apps.datasets.formats.schema1 import read_schema1
from apps.datasets.formats.sectioned import read_sectioned
from apps.datasets.formats.table import read_table_of_judgments
from apps.datasets.records import DatasetRecord
from benchbench.files.sniffing import Kind
from benchbench.local_files.placing import Files

TABLE = ("columns", "ignore", "grade_factor", "is_lenient")
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
    "keyed": Format(
        label="Queries by key (JSON)",
        read=read_keyed,
        file="JSON with queries and relevant_docs by key, or with documents by query",
        kind="keyed",
    ),
    "table": Format(
        label="Table (CSV, workbook, JSON)",
        read=read_table_of_judgments,
        file="CSV, JSON Lines or a JSON list with a row for each judgment",
        kind="table",
        options=TABLE,
    ),
    "two-files": Format(
        label="Queries and judgments in two files",
        read=read_two_files,
        directory="a file of queries (JSON Lines, topics, a table) and one of judgments (qrels, a table)",
        options=("split", *TABLE),
    ),
}
RATED: tuple[tuple[Kind, str, Callable[..., DatasetRecord], tuple[str, ...]], ...] = (
    (
        "quepid-ratings",
        "Quepid ratings (CSV: query, docid, rating; JSON, RRE, learning to rank)",
        read_ratings,
        ("grade_factor",),
    ),
    ("quepid-snapshot", "Quepid snapshot (JSON)", read_snapshot_ratings, ("grade_factor",)),
    ("rank-eval", "_rank_eval body", read_rank_eval, ("grade_factor", "columns")),
    ("opensearch-judgments", "OpenSearch judgment list", read_judgment_list, ("grade_factor",)),
    ("opensearch-queries", "OpenSearch query set", read_query_set, ()),
)
for _name, _label, _read_rated, _options in RATED:
    FORMATS[_name] = Format(label=_label, read=_read_rated, file=_label, kind=_name, options=_options)
ONE_FILE = [format.file for format in FORMATS.values() if format.file]
SEVERAL_FILES = [format.directory for format in FORMATS.values() if format.directory]
FILES, DIRECTORIES = "; ".join(ONE_FILE), "; ".join(SEVERAL_FILES)
SOURCES = (
    f"A file: {FILES}. Or a directory as a zip, or its files at once: {DIRECTORIES}. Any file may be compressed (.gz)."
)
WRITERS = {name: format for name, format in FORMATS.items() if format.content_type}
