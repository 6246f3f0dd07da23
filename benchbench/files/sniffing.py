"""Detection of a file's kind by its first characters, not by its name."""

import codecs
import json
import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Literal

from benchbench.errors import FileFormatError
from benchbench.files.beir import find_columns_of_qrels
from benchbench.files.columns import FIELDS, REFERENCES, assign_columns, fold_column
from benchbench.files.quepid import are_ranked, find_columns
from benchbench.files.tables import DELIMITER, NUMBER, find_delimiter, read_table
from benchbench.files.workbooks import ENDINGS as WORKBOOKS
from benchbench.reading.strict_json import BLOCK_BYTES, read_chunks, read_lines

Kind = Literal[
    "benchbench-json",
    "module-queries",
    "ground-truth",
    "sectioned-document",
    "flowbaby-topics",
    "flowbaby-qrels",
    "flowbaby-run",
    "beir-lines",
    "beir-qrels",
    "trec-qrels",
    "trec-topics",
    "trec-run",
    "quepid-ratings",
    "quepid-snapshot",
    "rank-eval",
    "opensearch-judgments",
    "opensearch-queries",
    "query-log",
    "keyed",
    "table",
    "",
]
COLUMNS = {*FIELDS[:10]}  # of judgments
LOG_TEXTS = ("text", "query")  # of a log of queries with their counts
# Columns are separated by ASCII white space, as in TREC's readers. An id may contain other white space.
QREL = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?\d{1,9}(?:\.0*)?", re.ASCII)
BARE = re.compile(rf"[,;|\t] *\"?{NUMBER.pattern}\"?\s*$")  # the end of a row whose table has no header
TRIPLE = re.compile(r"\S+\s+\S+\s+[+-]?\d{1,9}(?:\.0*)?", re.ASCII)
TOPIC = re.compile(r"\S+ *\t[^\t]+", re.ASCII)
RESULT = re.compile(r"\S+\s+\S+\s+\S+\s+\S+\s+[+-]?[\d.][\d.eE+-]*\s+\S.*", re.ASCII)
# In this order: the first matching key at a file's beginning decides. Inside a JSON string a quote has a backslash
# before it, so these do not match quoted text.
OBJECTS: tuple[tuple[str, Kind], ...] = (
    ('"benchmark_queries"', "module-queries"),
    ('"expected_modules"', "module-queries"),
    ('"canonical_item_id"', "flowbaby-run"),
    ('"query_key"', "benchbench-json"),
    ('"judgmentRatings"', "opensearch-judgments"),
    ('"querySetQueries"', "opensearch-queries"),
    ('"has_snapshot_file"', "quepid-snapshot"),
    ('"rated_only"', "quepid-snapshot"),
    ('"requests"', "rank-eval"),
    ('"relevant_documents"', "quepid-ratings"),
    ('"ratings"', "quepid-ratings"),
    ('"queries"', "benchbench-json"),
    ('"sections"', "sectioned-document"),
)
LISTS: tuple[tuple[str, Kind], ...] = (
    ('"expected_modules"', "module-queries"),
    ('"canonical_item_id"', "flowbaby-qrels"),
    ('"slice_ids"', "flowbaby-topics"),
    ('"section_ids"', "ground-truth"),
)


GROUND_TRUTH = re.compile('"question"|"document_id"')
# Objects with texts of queries by key, and with documents by query.
TEXT = r'"(?:[^"\\]|\\.)*"'
WRAPPED = re.compile(rf"\{{\s*(?:{TEXT}\s*:\s*(?:{TEXT}|[\w.+-]+)\s*,\s*)*{TEXT}\s*:\s*\[\s*\{{", re.DOTALL)
SCHEMA = re.compile('"schema_version"|"query_key"')
KEYED = re.compile(r'"queries"\s*:\s*\{')
BY_QUERY = re.compile(rf'\{{\s*{TEXT}\s*:\s*(?:\[\s*"|\{{\s*{TEXT}\s*:\s*[-+]?\d)', re.DOTALL)


QUERY_NAMES = re.compile(r"quer(y|ies)|topics?|questions?|fragen", re.IGNORECASE)
DOCUMENT_NAMES = re.compile(r"corpus|collection|passages|docs?\b|documents?\b|dokumente", re.IGNORECASE)
LONGEST_QUERY, SAMPLE = 200, 50  # characters, on average; lines that are looked at


class SwappedError(FileFormatError):
    """Documents were given as judged queries, or the reverse."""


def holds_documents(path: Path) -> bool:
    """Return whether lines of `_id` and `text` are documents rather than queries: titled, called so, or long."""
    lines = _read_sample(path)
    rows = [row for line in lines if (row := _parse(line)) and isinstance(row.get("text"), str)]
    length = sum(len(str(row["text"])) for row in rows) / max(len(rows), 1)
    if QUERY_NAMES.search(path.name) and not DOCUMENT_NAMES.search(path.name):
        return length > LONGEST_QUERY
    has_title = any(row.get("title") for row in rows)
    return has_title or bool(DOCUMENT_NAMES.search(path.name)) or length > LONGEST_QUERY


def _read_sample(path: Path) -> list[str]:
    return [line for _, line in islice(read_lines(path), SAMPLE)]


def describe_judged(path: Path) -> str:
    """Return "queries", "judgments" or "judged queries" if a file holds these rather than documents, else ""."""
    kind = sniff(path)
    if kind == "beir-lines":
        return "queries" if QUERY_NAMES.search(path.name) and not holds_documents(path) else ""
    if kind == "table":
        fields = assign_columns(read_table(path)[0], {}, ())
        is_pair = "query_key" in fields and not fields.keys().isdisjoint(REFERENCES)
        # A column "text" may be of documents, and one of ratings, of products.
        has_queries = is_pair or fold_column(fields.get("query_text", "text")) != "text"
        return "judged queries" if "grade" in fields and has_queries else ""
    if kind == "trec-topics" and not QUERY_NAMES.search(path.name):
        lines = _read_sample(path)
        is_long = lines[0].lstrip()[0] != "<" and sum(map(len, lines)) > LONGEST_QUERY * len(lines)
        return "" if is_long or DOCUMENT_NAMES.search(path.name) else "queries"  # as MS MARCO's collection.tsv
    if kind == "keyed" and not KEYED.search(next(read_chunks(path), b"").decode(errors="replace")):
        return ""  # as settings of documents may be
    if kind == "benchbench-json" and b'"queries"' not in next(read_chunks(path), b""):
        return ""  # the guess for any JSON
    if kind in ("", "sectioned-document", "trec-run", "flowbaby-run"):
        return ""
    return {"trec-topics": "queries", "trec-qrels": "judgments", "beir-qrels": "judgments"}.get(kind, "judged queries")


def sniff(path: Path) -> Kind:
    """Return the kind of `path` by its first 256 KiB, unpacked if it is a `.gz`; "" if it is not recognised.

    The guess may be wrong for a damaged file; the reader of that kind then raises an error.
    """
    head = next(read_chunks(path), b"").removeprefix(codecs.BOM_UTF8)
    if len(head) == BLOCK_BYTES:
        head = head[: head.rfind(b"\n")] if b"\n" in head else head  # the last line may be cut
    lines = [line for raw in head.split(b"\n") if (line := raw.decode(errors="replace").rstrip("\r")).strip()]
    if not lines:
        return ""
    start = lines[0].lstrip()[0]
    if start in "{[" and _parse(lines[0]) is None and (kind := _sniff_trec(lines[:1000])):
        return kind  # queries whose keys begin like JSON
    if start == "{":
        return _sniff_object(lines, path)
    if start == "[":
        text = "\n".join(lines)
        is_rows = text.lstrip()[1:].lstrip().startswith("{") and not path.name.startswith("ground_truth.json")
        return _find_first(LISTS, text) or ("table" if is_rows else "ground-truth" if GROUND_TRUTH.search(text) else "")
    if start == "<":
        return "trec-topics" if re.search(r"<top(ic)?\b", "\n".join(lines), re.IGNORECASE) else ""
    return _sniff_columns(lines, path)


def _sniff_object(lines: list[str], path: Path) -> Kind:
    first = _parse(lines[0])
    if first is not None and "queries" not in first and "benchmark_queries" not in first:
        if "_id" in first:
            return "beir-lines"
        if "queryText" in first:
            return "opensearch-queries"
        if _is_log(first):
            return "query-log"
        if len(assign_columns(first, {}, ()).keys() & COLUMNS) > 1:
            return "table"
        if path.name.removesuffix(".gz").endswith(".jsonl") or (len(lines) > 1 and _parse(lines[1]) is not None):
            return "table"
    text = "\n".join(lines)
    if KEYED.search(text) and not SCHEMA.search(text):
        return "keyed"
    kind = _find_first(OBJECTS, text)
    if not kind and WRAPPED.match(text.lstrip()):
        return "table"
    return kind or ("keyed" if BY_QUERY.match(text.lstrip()) else "benchbench-json")


def _sniff_columns(lines: list[str], path: Path) -> Kind:
    if DELIMITER.match(lines[0].encode()):
        lines = lines[1:] or lines
    sample = lines[:1000]
    if are_ranked(sample):
        return "quepid-ratings"
    if find_columns_of_qrels(lines[0]):
        return "beir-qrels"
    cells = {cell.strip().strip('"').lower() for cell in lines[0].split(find_delimiter(lines[0]))}
    if len(cells) > 1 and cells & COLUMNS:
        return "table"
    if len(find_columns(cells)) == 3:
        return "quepid-ratings"
    if _is_log(cells):
        return "query-log"
    if len(assign_columns(cells, {}, ()).keys() & COLUMNS) > 1:
        return "table"
    is_csv = path.name.lower().removesuffix(".gz").endswith((".csv", *WORKBOOKS))
    if kind := _sniff_trec(sample, topics=not is_csv):
        return kind
    if is_csv:
        return "table"
    return _sniff_bare(sample, is_table=len(cells) > 2 and bool(BARE.search(lines[0])))


def _sniff_bare(lines: list[str], *, is_table: bool) -> Kind:
    """Return the kind of lines without a header."""
    if all(TRIPLE.fullmatch(line.strip()) for line in lines):
        return "beir-qrels"
    if is_table:
        return "table"
    return "trec-topics" if all("\t" in line for line in lines) else ""


def _sniff_trec(lines: list[str], *, topics: bool = True) -> Kind:
    if topics and all(TOPIC.fullmatch(line.strip()) for line in lines):
        return "trec-topics"  # before judgments: a question may have three words, and end in a number
    if all(QREL.fullmatch(line.strip()) for line in lines):
        return "trec-qrels"
    return "trec-run" if all(RESULT.fullmatch(line.strip()) for line in lines) else ""


def _is_log(columns: Collection[str]) -> bool:
    return "count" in columns and any(name in columns for name in LOG_TEXTS) and COLUMNS.isdisjoint(columns)


def _find_first(kinds: tuple[tuple[str, Kind], ...], text: str) -> Kind:
    return next((kind for key, kind in kinds if key in text), "")


def _parse(line: str) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
