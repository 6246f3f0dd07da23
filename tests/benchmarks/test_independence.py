"""A run's result is a function of its own configuration alone: not of its neighbours, the batch or the threads."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.core.management import call_command
from threadpoolctl import threadpool_limits

from apps.benchmarks.creating import create_benchmark
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.planning import plan_of
from apps.benchmarks.rankings import results_of
from apps.benchmarks.stages import Stages
from apps.datasets.models import Query
from apps.retrieval.searching import close_indexes, open_index
from tests.benchmarks.conftest import make_library

WIDE = {
    "search_modes": ["dense", "sparse", "hybrid"],
    "top_k_values": [20, 50],
    "candidates": [None, 80],
    "rrf_k_values": [20, 60],
    "score_thresholds": [None, 0.4],
}
Rankings = dict[tuple[str, int], tuple[list[int], list[int], list[float]]]


@pytest.fixture(scope="module")
def wide(django_db_setup: None, django_db_blocker: Any) -> Iterator[Benchmark]:
    with django_db_blocker.unblock():
        benchmark = create_benchmark(make_library(documents=300, queries=40), name="wide", matrix=WIDE)
        yield benchmark
        close_indexes()
        call_command("flush", interactive=False, verbosity=0)


def rankings(runs: Sequence[Run], *, batch: int, threads: int) -> Rankings:
    """Search with these runs together, in batches of `batch` queries, on `threads` threads."""
    queries = list(Query.objects.filter(dataset__mappings__benchmarks=runs[0].benchmark).order_by("pk"))
    indexes = {run.config.get("index"): open_index(run.index) for run in runs if run.index}
    plan = plan_of(runs)
    found: Rankings = {}
    with threadpool_limits(limits=threads):
        for start in range(0, len(queries), batch):
            part = queries[start : start + batch]
            outcomes = Stages(part, indexes, tolerant=False).run(plan)
            for result in results_of(plan, outcomes, [query.pk for query in part], indexes, max_k=20):
                lists = result.document_ids.tolist(), result.chunk_ids.tolist(), result.scores.tolist()
                found[str(result.run_id), result.query_id] = lists
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 7, 300])
def test_rankings_are_bit_equal_in_any_batch_and_on_any_number_of_threads(
    wide: Benchmark, batch: int, threads: int
) -> None:
    runs = list(wide.runs.select_related("index", "benchmark"))
    assert len(runs) == 24
    assert rankings(runs, batch=batch, threads=threads) == rankings(runs, batch=40, threads=2)


@pytest.mark.django_db
def test_rankings_are_bit_equal_alone_and_in_the_matrix(wide: Benchmark) -> None:
    runs = list(wide.runs.select_related("index", "benchmark"))
    together = rankings(runs, batch=7, threads=2)
    alone = {key: found for run in runs for key, found in rankings([run], batch=7, threads=2).items()}
    assert alone == together
