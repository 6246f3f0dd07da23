"""Benchmarks on a machine whose memory holds one index at a time."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from psycopg.pq import TransactionStatus

from apps.execution.launching import launch
from apps.operations.working import wait
from apps.records.models import QueryResult
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.search import pgvector
from apps.retrieval.search.layouts import Layout
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.process import reset_all
from tests.created import create_benchmark, run_benchmark
from tests.library import ENCODER, make_library
from tests.retrieval.llm_server import MODEL, known_server


@pytest.fixture(autouse=True)
def one_index_at_a_time(settings: Any) -> Iterator[None]:
    settings.BENCHBENCH_RESIDENT_BYTES = 1
    reset_all()
    yield
    reset_all()


def test_index_is_never_read_during_a_copy(library, monkeypatch):
    """Its rows would come over the connection that waits for the rest of the lists."""
    wait(build_index(create_index(library.collection, name="other", encoder=ENCODER)))
    opened: list[str] = []
    open_it = OpenIndex.__init__

    def watched(self: OpenIndex, index: Index) -> None:
        assert connection.connection.info.transaction_status != TransactionStatus.ACTIVE
        opened.append(index.name)
        open_it(self, index)

    monkeypatch.setattr(OpenIndex, "__init__", watched)
    benchmark = run_benchmark(library, name="b", matrix={"indexes": ["keywords", "other"], "search_modes": ["hybrid"]})
    assert {run.status for run in benchmark.runs.all()} == {"completed"}
    assert opened.count("keywords") > 3, "more often than once a batch"


@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_one_time_reads_are_not_charged_to_queries(transactional_db, settings, monkeypatch, execution):
    """By a clock on which it takes a thousand seconds to open an index, to read its layout, and to ready PostgreSQL."""
    library = make_library(documents=12, queries=3)
    once = [(OpenIndex, "__init__"), (Layout, "load"), (pgvector, "_plan"), (pgvector, "_list_parameters")]
    with known_server(settings, monkeypatch):
        for name, llm in (("lod_embed", ""), ("lod_llm", MODEL)):
            fields = {"name": name, "strategy": name, "llm": llm}
            wait(build_index(create_index(library.collection, encoder=ENCODER, **fields)))
        names, arms = ["keywords", "lod_embed", "lod_llm"], ["exact", "pgvector:exact"]
        benchmark = create_benchmark(library, name="b", matrix={"indexes": names, "ann": arms}, execution=execution)
        clock, late = time.perf_counter, []
        monkeypatch.setattr(time, "perf_counter", lambda: clock() + 1000 * len(late))
        for owner, name in once:
            monkeypatch.setattr(owner, name, slowed(getattr(owner, name), late))
        wait(launch(benchmark))
    results = QueryResult.objects.filter(run__benchmark=benchmark)
    assert set(results.values_list("error", flat=True)) == {""}
    assert results.filter(search_ms__lt=1_000_000).count() == len(names) * len(arms) * 3
    assert len(late) > results.count()


def slowed(work: Any, late: list[int]) -> Any:
    def slow(*supplied: Any, **method: Any) -> Any:
        late.append(1)
        return work(*supplied, **method)

    return slow
