"""Benchmarks of before lists were shared and values packed: both are the same to the last bit."""

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from apps.benchmarks.models.values import unpacked, with_none
from tests.old_database import add, migrate, old_database

pytestmark = pytest.mark.thorough

COLUMNS = "document_ids, chunk_ids, scores, encode_ms, total_ms, error"
RANKINGS = [
    ([3, 1, 2], [30, 10, 20], [1 / 3, 0.1, -0.0], 7.25, 1 / 7, ""),
    ([], [], [], None, 0.5, "It timed out."),
    ([5], [50], [5e-324], None, None, ""),
]
VALUES = [[[1 / 3, None, -0.0], [5e-324, None, 1.0]], []]


@pytest.fixture
def old(db: None) -> Iterator[psycopg.Connection[Any]]:
    """A database as it was before, whose foreign keys are not checked."""
    with old_database("benchmarks 0003") as there:
        there.execute("SET session_replication_role = replica")
        yield there


def test_rankings_and_values_of_before_are_what_they_were(old: psycopg.Connection[Any]) -> None:
    benchmark, runs = uuid.uuid4(), [uuid.UUID(int=2), uuid.UUID(int=3)]
    policies = {"execution": "shared", "unresolved": "count", "empty_queries": "zero"}
    add(old, "benchmarks_benchmark", id=benchmark, status="completed", **policies)
    for order, run in enumerate(runs, start=1):
        known = {"id": run, "benchmark_id": benchmark, "run_order": order, "config_hash": str(order)}
        config = '{"search_mode": "sparse"}' if order == 1 else '{"search_mode": "hybrid"}'
        add(old, "benchmarks_run", **known, status="failed", config=config)
    for query, ranking in enumerate(RANKINGS, start=7):
        add(old, "datasets_query", id=query, key=str(query), text="apple")
        for run in runs[: 1 if query == 7 else 2]:
            values = dict(zip(COLUMNS.split(", "), ranking, strict=True))
            add(old, "benchmarks_queryresult", run_id=run, query_id=query, repetition=2, **values)
    stage = {"benchmark_id": benchmark, "stage_key": "dense(exact)", "query_id": 7}
    add(old, "benchmarks_stagelist", **stage, chunk_ids=[30, 10, 20, 40], scores=[4.0, 3.0, 2.0, 1.0])
    for run, values in zip(runs, VALUES, strict=True):
        add(old, "benchmarks_evaluation", run_id=run, **{"values": values})
    index, unsearched = uuid.uuid4(), uuid.UUID(int=4)
    add(old, "retrieval_index", id=index, name="chroma", store="chromadb", status="failed")
    known = {"benchmark_id": benchmark, "run_order": 3, "config_hash": "3", "config": '{"search_mode": "dense"}'}
    add(old, "benchmarks_run", id=unsearched, index_id=index, status="failed", **known)
    asked = f"SELECT run_id, query_id, repetition, {COLUMNS} FROM benchmarks_queryresult ORDER BY run_id, query_id"
    before = old.execute(asked).fetchall()
    migrate(old.info.dbname, "benchmarks 0006")
    assert repr(old.execute(asked).fetchall()) == repr(before), "-0.0 too"
    assert len(before) == 5
    kept = old.execute(
        "SELECT source.key, list.chunk_ids FROM benchmarks_stagelist AS list JOIN benchmarks_listsource AS source "
        "ON source.id = list.source_id WHERE list.lengths IS NULL"
    )
    assert kept.fetchall() == [("dense(exact)", [30, 10, 20, 40])]
    migrate(old.info.dbname, "benchmarks 0007")
    assert repr(old.execute(asked).fetchall()) == repr(before)
    calls = old.execute(
        "SELECT DISTINCT run.run_order, result.embed_calls, result.llm_calls, result.fallback_used "
        "FROM benchmarks_queryresult AS result JOIN benchmarks_run AS run ON run.id = result.run_id ORDER BY 1"
    )
    assert calls.fetchall() == [(1, 0, 0, None), (2, 1, 0, None)], "words alone take no encoding"
    migrate(old.info.dbname, "benchmarks 0008")
    told = old.execute("SELECT config ->> 'ann', label FROM benchmarks_run WHERE id = %s", [unsearched]).fetchone()
    assert told == ("chromadb:hnsw", "dense · chromadb:hnsw · top 100"), "the store that its index named"
    evaluations = old.execute('SELECT "values" FROM benchmarks_evaluation ORDER BY run_id').fetchall()
    assert repr([with_none(unpacked(packed)) for (packed,) in evaluations]) == repr(VALUES)
