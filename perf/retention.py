"""Deleting the lists of 64 stages × 10,000 queries from one table, against dropping a partition with as many.

The table without partitions has the lists of two benchmarks. Those of the first are deleted in batches of four stages,
as `prune` does; then it is vacuumed, and gets the lists of a third. Sizes are with indexes.
"""

import argparse
import time

import throwaway

throwaway.open_site()

from django.db import connection

STAGES, QUERIES, DEPTH, AT_ONCE = 64, 10_000, 20, 4
FILL = """
INSERT INTO {table} (id, source_id, query_id, repetition, chunk_ids, scores, document_ids, lengths, error)
SELECT {first} + row_number() OVER (), source, query, 1, made.ids, made.scores, made.ids, ARRAY[100], ''
FROM generate_series({start}, {end}) source, generate_series(1, {queries}) query, LATERAL (
  SELECT array_agg((random() * 1e6)::bigint) ids, array_agg(random()) scores
  FROM generate_series(1, {depth}) WHERE source + query > 0
) made
"""


def execute(statement: str) -> float:
    """Execute a statement and return its seconds."""
    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(statement)
    return time.perf_counter() - started


def fill(table: str, number: int, queries: int) -> float:
    start = STAGES * number
    shape = {"first": number * 10**9, "start": start, "end": start + STAGES - 1, "queries": queries, "depth": DEPTH}
    return execute(FILL.format(table=table, **shape))


def measure_mb(table: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [table])
        return float(cursor.fetchone()[0]) / 1e6


def make_tables() -> None:
    execute("CREATE TABLE plain (LIKE benchmarks_stagelist INCLUDING ALL)")
    execute("CREATE TABLE parted (LIKE benchmarks_stagelist INCLUDING DEFAULTS) PARTITION BY RANGE (source_id)")
    execute("ALTER TABLE parted ADD UNIQUE (source_id, query_id, repetition)")
    for number in range(2):
        bounds = f"FROM ({STAGES * number}) TO ({STAGES * (number + 1)})"
        execute(f"CREATE TABLE parted_{number} PARTITION OF parted FOR VALUES {bounds}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=QUERIES)
    queries = parser.parse_args().queries
    make_tables()
    for table in ("plain", "parted"):
        for number in range(2):
            fill(table, number, queries)
    before = measure_mb("plain")
    deleted = sum(
        execute(f"DELETE FROM plain WHERE source_id BETWEEN {start} AND {start + AT_ONCE - 1}")
        for start in range(0, STAGES, AT_ONCE)
    )
    vacuumed, refilled = execute("VACUUM plain"), fill("plain", 2, queries)
    dropped = execute("ALTER TABLE parted DETACH PARTITION parted_0") + execute("DROP TABLE parted_0")
    print(f"{STAGES} x {queries:,} lists of {DEPTH}, {before / 2:.0f} MB")
    print(f"deleted in {deleted:.1f} s, vacuumed in {vacuumed:.1f} s; a partition dropped in {dropped:.1f} s")
    print(f"as many again in {refilled:.1f} s: {before:.0f} MB became {measure_mb('plain'):.0f} MB")


if __name__ == "__main__":
    main()
