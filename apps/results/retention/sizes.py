"""Disk space: exact by table; of one collection, index or benchmark estimated from a sample of its tables."""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Model, QuerySet, Sum

from apps.accounts.models import Deletion
from apps.collections.models import Document, Section
from apps.operations.models import Batch, Operation
from apps.records.models import Benchmark, Evaluation, PairList, StageList
from apps.retrieval.models import Chunk, Index, LexicalIndex

SAMPLE_BYTES = 2**24  # that an estimate reads of a table
ROW_BYTES = 24  # header of a row
KINDS = (
    ("Documents", ("collections_",)),
    ("Chunks", ("retrieval_chunk",)),
    ("BM25 and full text", ("retrieval_lexical", "words_")),
    ("Deleted rows in the bin", ("bin_",)),
    ("Vectors of indexes", ("vectors_",)),
    ("Queries, judgments, mappings", ("datasets_", "mappings_")),
    ("Lists and rankings", ("benchmarks_stagelist", "benchmarks_pairlist", "benchmarks_listsource")),
    ("Values and evaluations", ("benchmarks_evaluation", "benchmarks_batchvalues")),
    ("Cached vectors", ("retrieval_cachedvector", "retrieval_vectorspace")),
    ("Cached answers of language models", ("retrieval_llmanswer",)),
    ("Cached answers of engines", ("engines_",)),
    ("Operations and batches", ("operations_",)),
)
FILES = {".vectors": "Vectors", ".words": "BM25 indexes", ".stores": "Stores", "packs": "Token vectors"}
OTHER_FILES = "Other files"
Columns = dict[str, Counter[Any]]  # bytes by column, then by key


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the database: all, by kind, and by the key of a collection, index or benchmark in columns."""

    total: int
    kinds: dict[str, int]
    tables: dict[str, tuple[int, int]]  # sampled_bytes with its indexes, and its pgvector indexes


def load_sizes() -> Sizes:
    """Read the sizes of the database and its tables, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid), coalesce((SELECT sum(pg_relation_size(i.indexrelid)) "
            "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam "
            "WHERE i.indrelid = t.oid AND m.amname IN ('hnsw', 'ivfflat')), 0)::bigint, "
            "(SELECT pg_database_size(current_database())) "  # once, and not for each table
            "FROM pg_class t WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        rows = cursor.fetchall()
    kinds = Counter({name: 0 for name, _ in KINDS})
    for table, size, *_ in rows:
        kinds[next((name for name, starts in KINDS if table.startswith(starts)), "")] += size
    total = rows[0][3]
    del kinds[""]
    kinds["Everything else"] = total - sum(kinds.values())
    return Sizes(total, dict(kinds), {table: (size, special) for table, size, special, _ in rows})


def estimate_shares(sizes: Sizes, model: type[Model], owner: str, join: str = "") -> Counter[Any]:
    """Return the bytes of a table by owner: the owner's share of the bytes of sampled rows.

    `owner` and `join` are SQL; the table is `t`. Values outside a row (TOAST) count with their stored size. If all
    sampled blocks are empty, as after many deletions, it reads the whole table.
    """
    table = model._meta.db_table
    total = sizes.tables[table][0]
    row = " + ".join(f'coalesce(pg_column_size(t."{field.column}"), 0)' for field in model._meta.concrete_fields)
    percent = min(100.0, 100 * SAMPLE_BYTES / max(total, 1))
    sampled = {}
    with connection.cursor() as cursor:
        for sampled_percent in dict.fromkeys((percent, 100.0)):
            cursor.execute(
                f"SELECT {owner}, sum({ROW_BYTES} + {row}) FROM {table} t "  # nosec # names of tables and columns
                f"TABLESAMPLE SYSTEM (%s) REPEATABLE (0) {join} GROUP BY 1",
                [sampled_percent],
            )
            if sampled := {key: int(size) for key, size in cursor.fetchall()}:
                break
    sampled_bytes = sum(sampled.values())
    return Counter({key: total * size // sampled_bytes for key, size in sampled.items()})


def estimate_collections(sizes: Sizes) -> Columns:
    of_document = "JOIN collections_document o ON o.id = t.document_id"
    return {
        "Documents": estimate_shares(sizes, Document, "t.collection_id"),
        "Sections": estimate_shares(sizes, Section, "o.collection_id", of_document),
    }


def estimate_benchmarks(sizes: Sizes) -> Columns:
    of_source = "JOIN benchmarks_listsource o ON o.id = t.source_id"
    return {
        "Lists": estimate_shares(sizes, StageList, "o.benchmark_id", of_source),
        "Reranked pairs": estimate_shares(sizes, PairList, "t.benchmark_id"),
        "Values": estimate_shares(sizes, Evaluation, "o.benchmark_id", "JOIN benchmarks_run o ON o.id = t.run_id"),
    }


def estimate_indexes(sizes: Sizes) -> Columns:
    """Return the bytes of indexes. Those that share chunks or words count them in equal columns; vectors are exact."""
    sets = dict(Index.objects.order_by().values_list("pk", "chunk_set"))
    sharing, vectors = Counter(sets.values()), {key: sizes.tables.get(f"vectors_{key.hex}", (0, 0)) for key in sets}
    chunks = estimate_shares(sizes, Chunk, "t.chunk_set_id")
    words = Counter(dict(LexicalIndex.objects.order_by().values_list("chunk_set").annotate(Sum("size_bytes"))))
    scale = sizes.kinds["BM25 and full text"] / max(1, words.total())
    return {
        "Vectors": Counter({key: size - special for key, (size, special) in vectors.items()}),
        "Approximate indexes": Counter({key: special for key, (_, special) in vectors.items()}),
        "Chunks": Counter({key: chunks[chunk_set] // sharing[chunk_set] for key, chunk_set in sets.items()}),
        "Words": Counter({key: int(words[chunk_set] * scale) // sharing[chunk_set] for key, chunk_set in sets.items()}),
    }


def list_largest(
    columns: Columns, visible_rows: QuerySet[Model], limit: int
) -> tuple[list[tuple[object, list[int]]], int]:
    """Return the largest of the `visible_rows` rows, each with the bytes of its columns, and those of all others."""
    totals = sum(columns.values(), Counter[Any]())
    keys = sorted({*visible_rows.values_list("pk", flat=True)} & totals.keys(), key=lambda key: -totals[key])[:limit]
    rows = visible_rows.in_bulk(keys)
    remaining = totals.total() - sum(totals[key] for key in keys)
    return [(rows[key], [column[key] for column in columns.values()]) for key in keys], remaining


def count_due_bytes(rows: QuerySet[Model], sizes: Sizes) -> int:
    """Return the estimated bytes of rows that a policy of retention names."""
    keys = rows.values_list("pk", flat=True)
    if rows.model is Deletion:
        return sum(rows.values_list("size", flat=True))
    if rows.model in (Benchmark, Index):
        columns = estimate_benchmarks(sizes) if rows.model is Benchmark else estimate_indexes(sizes)
        columns.pop("Values", None)
        return sum(column[key] for column in columns.values() for key in keys)
    groups = [rows, Batch.objects.filter(operation__in=keys)] if rows.model is Operation else [rows]
    return sum(
        sizes.tables[group.model._meta.db_table][0] * group.count() // max(1, group.model._default_manager.count())
        for group in groups
    )


def measure_files() -> dict[str, int]:
    """Return the bytes of the files under BENCHBENCH_VECTOR_DIR on this machine, by kind."""
    kinds = Counter(dict.fromkeys((*FILES.values(), OTHER_FILES), 0))
    folder = Path(settings.BENCHBENCH_VECTOR_DIR)
    for directory, _, names in os.walk(folder):
        for file in (Path(directory) / name for name in names):
            top = Path(file.relative_to(folder).parts[0])
            with suppress(FileNotFoundError):  # a worker may replace it
                kinds[FILES.get(top.suffix or top.name, OTHER_FILES)] += file.lstat().st_size
    return dict(kinds)
