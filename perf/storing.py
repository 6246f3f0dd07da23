"""Storing the rankings of 16 runs × 1,000 queries × 100 documents by COPY, against the ORM's bulk_create."""

import statistics
import time
import uuid

import throwaway

throwaway.open_site()

import numpy as np
from django.db import connection, transaction

from apps.benchmarks.measuring.run_result import RunResult
from apps.benchmarks.models import QueryResult
from apps.benchmarks.running.storing import store_results

RUNS, QUERIES, DEPTH, ROUNDS = 16, 1_000, 100, 5


def rows() -> list[RunResult]:
    rng = np.random.default_rng(4)
    timings = {"encode_ms": 7.0, "search_ms": 0.3, "total_ms": 7.3}
    runs = [uuid.uuid4() for _ in range(RUNS)]
    return [
        RunResult(run, query, 1, *rng.integers(1, 10**6, (2, DEPTH)), rng.random(DEPTH), timings)
        for run in runs
        for query in range(1, QUERIES + 1)
    ]


def by_orm(results: list[RunResult]) -> None:
    QueryResult.objects.bulk_create(
        [
            QueryResult(
                run_id=one.run_id,
                query_id=one.query_id,
                document_ids=one.document_ids.tolist(),
                chunk_ids=one.chunk_ids.tolist(),
                scores=one.scores.tolist(),
                **(one.timings or {}),
            )
            for one in results
        ],
        batch_size=500,
    )


def timed(act, results: list[RunResult]) -> float:
    """Seconds to write and commit the rows, which then go. The foreign keys are checked by neither: no such runs."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        started = time.perf_counter()
        act(results)
        seconds = time.perf_counter() - started
        transaction.set_rollback(True)
    return seconds


def main() -> None:
    results = rows()
    measured = [(timed(store_results, results), timed(by_orm, results)) for _ in range(ROUNDS)]
    copy, orm = (statistics.median(column) for column in zip(*measured, strict=True))
    print(f"{RUNS} x {QUERIES} results of {DEPTH}, median of {ROUNDS}: COPY {copy:.2f} s, bulk_create {orm:.2f} s")


if __name__ == "__main__":
    main()
