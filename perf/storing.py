"""Storing 16 final lists of 1,000 queries × 100 documents by COPY, against the ORM's bulk_create."""
# mypy: no-strict-optional

import statistics
import time
from collections.abc import Callable

import throwaway

throwaway.open_site()

import numpy as np
from django.db import connection, transaction

from apps.records.lists.final import FinalList, ListKey, SearchFacts, store_final_lists
from apps.records.models import StageList

LISTS, QUERIES, DEPTH, ROUNDS = 16, 1_000, 100, 5


def rows() -> list[FinalList]:
    rng = np.random.default_rng(4)
    timings = {"encode_ms": 7.0, "search_ms": 0.3, "total_ms": 7.3}
    return [
        FinalList(
            ListKey(source, query),
            SearchFacts(timings=timings),
            rng.integers(1, 10**6, DEPTH),
            rng.random(DEPTH),
            document_ids=rng.integers(1, 10**6, DEPTH),
            lengths=(DEPTH,),
        )
        for source in range(LISTS)
        for query in range(1, QUERIES + 1)
    ]


def by_orm(results: list[FinalList]) -> None:
    StageList.objects.bulk_create(
        [
            StageList(
                source_id=one.key.source,
                query_id=one.key.query_id,
                lengths=list(one.lengths),
                document_ids=one.document_ids.tolist(),
                chunk_ids=one.chunk_ids.tolist(),
                scores=one.scores.tolist(),
                **one.facts.timings,
            )
            for one in results
        ],
        batch_size=500,
    )


def timed(act: Callable[[list[FinalList]], object], results: list[FinalList]) -> float:
    """Seconds to write and commit the rows, which then go. The foreign keys are checked by neither: no such sources."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        started = time.perf_counter()
        act(results)
        seconds = time.perf_counter() - started
        transaction.set_rollback(True)
    return seconds


def main() -> None:
    results = rows()
    measured = [(timed(store_final_lists, results), timed(by_orm, results)) for _ in range(ROUNDS)]
    copy, orm = (statistics.median(column) for column in zip(*measured, strict=True))
    print(f"{LISTS} x {QUERIES} lists of {DEPTH}, median of {ROUNDS}: COPY {copy:.2f} s, bulk_create {orm:.2f} s")


if __name__ == "__main__":
    main()
