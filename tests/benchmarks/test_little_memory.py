"""Benchmarks on a machine whose memory holds one index at a time."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from psycopg.pq import TransactionStatus

from apps.benchmarks.launching import launch
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import Index
from apps.retrieval.search.open_indexes import OpenIndex, close_indexes
from tests.benchmarks.conftest import ENCODER
from tests.created import create_benchmark


@pytest.fixture(autouse=True)
def one_index_at_a_time(settings: Any) -> Iterator[None]:
    settings.BENCHBENCH_RESIDENT_BYTES = 1
    close_indexes()
    yield
    close_indexes()


def test_an_index_is_never_read_in_the_midst_of_a_copy(library: Mapping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would come over the connection that waits for the rest of the lists."""
    wait(build_index(create_index(library.collection, name="other", encoder=ENCODER)))
    opened: list[str] = []
    open_it = OpenIndex.__init__

    def watched(self: OpenIndex, index: Index) -> None:
        assert connection.connection.info.transaction_status != TransactionStatus.ACTIVE
        opened.append(index.name)
        open_it(self, index)

    monkeypatch.setattr(OpenIndex, "__init__", watched)
    matrix = {"indexes": ["keywords", "other"], "search_modes": ["hybrid"]}
    benchmark = create_benchmark(library, name="b", matrix=matrix)
    wait(launch(benchmark))
    assert {run.status for run in benchmark.runs.all()} == {"completed"}
    assert opened.count("keywords") > 3, "more often than once a batch"
