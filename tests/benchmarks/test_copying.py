import math

import numpy as np
import pytest
from django.db import connection

from apps.benchmarks.measuring.reading import FinalList
from apps.benchmarks.models import ListSource, QueryResult, StageList
from apps.benchmarks.running.rankings import store_final_lists
from apps.mappings.models import Mapping
from tests.created import create_benchmark


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_what_is_copied_comes_back_to_the_last_bit(library: Mapping, length: int) -> None:
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    query = library.dataset.queries.first()
    rng = np.random.default_rng(1)
    ids = rng.integers(1, 2**62, length)
    scores = rng.normal(size=length) * 1e-7
    run.source = ListSource.objects.create(benchmark=run.benchmark, key="made up")
    run.save()
    one = FinalList(
        run.source.pk,
        (run.pk,),
        query.pk,
        2,
        chunk_ids=ids + 1,
        scores=scores,
        document_ids=ids,
        lengths=(length,),
        timings={"encode_ms": math.pi, "total_ms": 0.1},
    )
    store_final_lists([one])
    stored = QueryResult.objects.get(run=run)
    assert (stored.repetition, stored.query_id, stored.error) == (2, query.pk, "")
    assert (stored.document_ids, stored.chunk_ids) == (ids.tolist(), (ids + 1).tolist())
    assert stored.scores == scores.tolist()
    assert (stored.encode_ms, stored.search_ms, stored.total_ms) == (math.pi, None, 0.1)


def test_storing_a_query_again_replaces_it(library: Mapping) -> None:
    run = create_benchmark(library, name="b", matrix={}).runs.get()
    query = library.dataset.queries.first()
    run.source = ListSource.objects.create(benchmark=run.benchmark, key="made up")
    run.save()
    store_final_lists([FinalList(run.source.pk, (run.pk,), query.pk, error="Zu spät – «timeout» \0")])
    store_final_lists([FinalList(run.source.pk, (run.pk,), query.pk, error="still late")])
    assert [result.error for result in QueryResult.objects.all()] == ["still late"]


def test_a_run_returns_the_first_documents_of_a_list_with_the_chunks_that_brought_them(library: Mapping) -> None:
    runs = list(create_benchmark(library, name="b", matrix={"top_k_values": [20, 30, 40]}).runs.order_by("run_order"))
    query = library.dataset.queries.first()
    source = ListSource.objects.create(benchmark=runs[0].benchmark, key="made up")
    for place, run in enumerate(runs, start=1):
        run.source, run.place = source, place
        run.save()
    chunks, scores = np.arange(101, 106), np.array([0.5, 0.4, 0.3, 0.2, 0.1])
    one = FinalList(
        source.pk,
        tuple(run.pk for run in runs),
        query.pk,
        chunk_ids=chunks,
        scores=scores,
        document_ids=np.array([7, 9, 8]),
        chunk_ranks=np.array([1, 3, 5]),
        lengths=(3, 0, 2),
    )
    store_final_lists([one])
    rows = [run.query_results.get() for run in runs]
    assert [row.document_ids for row in rows] == [[7, 9, 8], [], [7, 9]]
    assert [row.chunk_ids for row in rows] == [[101, 103, 105], [], [101, 103]]
    assert [row.scores for row in rows] == [[0.5, 0.3, 0.1], [], [0.5, 0.3]]
    assert [QueryResult.objects.get(QueryResult.numbered(row.pk)) for row in rows] == rows


@pytest.mark.django_db
def test_rankings_are_kept_as_they_are_not_compressed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [StageList._meta.db_table])
        assert cursor.fetchone()[0] == ["toast_tuple_target=8160"]
