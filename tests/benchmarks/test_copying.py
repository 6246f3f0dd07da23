import math

import numpy as np
import pytest
from django.db import connection

from apps.benchmarks.measuring.run_result import RunResult
from apps.benchmarks.models import QueryResult
from apps.benchmarks.running.storing import store_results
from apps.mappings.models import Mapping
from tests.created import create_benchmark


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_what_is_copied_comes_back_to_the_last_bit(library: Mapping, length: int) -> None:
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    query = library.dataset.queries.first()
    rng = np.random.default_rng(1)
    ids = rng.integers(1, 2**62, length)
    scores = rng.normal(size=length) * 1e-7
    result = RunResult(
        run.pk, query.pk, 2, ids, ids + 1, scores, {"encode_ms": math.pi, "total_ms": 0.1}, error="", short=False
    )
    store_results([result])
    stored = QueryResult.objects.get(run=run)
    assert (stored.repetition, stored.query_id, stored.error) == (2, query.pk, "")
    assert (stored.document_ids, stored.chunk_ids) == (ids.tolist(), (ids + 1).tolist())
    assert stored.scores == scores.tolist()
    assert (stored.encode_ms, stored.search_ms, stored.total_ms) == (math.pi, None, 0.1)


def test_storing_a_query_again_replaces_it(library: Mapping) -> None:
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    query = library.dataset.queries.first()
    store_results([RunResult(run.pk, query.pk, error="Zu spät – «timeout» \0")])
    store_results([RunResult(run.pk, query.pk, error="still late")])
    assert [result.error for result in QueryResult.objects.all()] == ["still late"]


@pytest.mark.django_db
@pytest.mark.parametrize("table", ["benchmarks_queryresult", "benchmarks_stagelist"])
def test_rankings_are_kept_as_they_are_not_compressed(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [table])
        assert cursor.fetchone()[0] == ["toast_tuple_target=8160"]
