"""A run's result is a function of its own configuration alone: not of its neighbours, the batch or the threads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from threadpoolctl import threadpool_limits

from apps.benchmarks.measuring.reading import FinalList
from apps.benchmarks.models import Benchmark, Run
from apps.benchmarks.planning import add_sources, build_shared_lists, plan_of
from apps.benchmarks.running.pairs import PinnedRerankers
from apps.benchmarks.running.rankings import build_final_lists
from apps.benchmarks.running.stages import Stages
from apps.datasets.models import Query
from apps.retrieval.search import exact
from apps.retrieval.search.ann_indexes import make_ann_index
from apps.retrieval.search.full_text import make_full_text
from apps.retrieval.search.open_indexes import close_indexes, open_index
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.stages import DenseStage, LexicalStage
from tests.benchmarks.conftest import make_library, make_wide
from tests.conftest import empty_tables

pytestmark = pytest.mark.thorough

RUNS, QUERIES = 24, 8
Rankings = dict[tuple[str, int], tuple[list[int], list[int], list[float]]]


@pytest.fixture(scope="module")
def wide(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any) -> Iterator[Benchmark]:
    """A benchmark of every axis, and all that it searches."""
    with django_db_blocker.unblock():
        library = make_library(documents=200, queries=QUERIES, filtered=True)
        benchmark = make_wide(library, tmp_path_factory.mktemp("models"), runs=RUNS)
        prepare(benchmark)
        add_sources(benchmark)
        yield benchmark
        close_indexes()
        empty_tables()


@pytest.fixture(scope="module")
def together(wide: Benchmark, django_db_blocker: Any) -> Rankings:
    with django_db_blocker.unblock():
        return rankings(runs_of(wide), batch=5, threads=2)


def runs_of(benchmark: Benchmark) -> list[Run]:
    return list(benchmark.runs.select_related("index__chunk_set", "benchmark"))


def prepare(benchmark: Benchmark) -> None:
    """Make the approximate indexes and the full text, as the first batch of a benchmark does."""
    for run in runs_of(benchmark):
        for stage in plan_of([run]).stages:
            if isinstance(stage, DenseStage) and stage.ann != "exact":
                make_ann_index(run.index, Ann.parse(stage.ann))
            if isinstance(stage, LexicalStage) and stage.engine == "fts":
                make_full_text(run.index.chunk_set)


def head(one: FinalList, length: int) -> tuple[list[int], list[int], list[float]]:
    """Return the first documents of a list, the chunk that brought each, and its score."""
    chunks = slice(length) if one.chunk_ranks is None else one.chunk_ranks[:length] - 1
    return one.document_ids[:length].tolist(), one.chunk_ids[chunks].tolist(), one.scores[chunks].tolist()


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    with threadpool_limits(count):
        yield
    torch.set_num_threads(before)


def rankings(runs: Sequence[Run], *, batch: int, threads: int) -> Rankings:
    """Search with these runs together, in batches of `batch` queries, on `threads` threads."""
    queries = list(Query.objects.filter(dataset__mappings__benchmarks=runs[0].benchmark).order_by("pk"))
    indexes = {run.config.get("index"): open_index(run.index) for run in runs if run.index}
    plan = plan_of(runs)
    found: Rankings = {}
    with on_threads(threads):
        for start in range(0, len(queries), batch):
            part = queries[start : start + batch]
            outcomes = Stages(part, indexes, PinnedRerankers(runs[0].benchmark), tolerant=False).run(plan)
            for one in build_final_lists(
                build_shared_lists(runs, plan), outcomes, [query.pk for query in part], indexes, max_k=10
            ):
                assert not one.error
                for run_id, length in zip(one.run_ids, one.lengths, strict=True):
                    found[str(run_id), one.query_id] = head(one, length)
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 7, 300])
def test_rankings_are_equal_in_any_batch(wide, together, batch, threads):
    assert len(together) == RUNS * QUERIES
    assert rankings(runs_of(wide), batch=batch, threads=threads) == together


@pytest.mark.django_db
def test_rankings_are_bit_equal_alone_and_in_the_matrix(wide, together):
    alone = {key: found for run in runs_of(wide) for key, found in rankings([run], batch=7, threads=2).items()}
    assert alone == together


@pytest.mark.gpu
@pytest.mark.django_db
def test_rankings_are_equal_on_a_gpu(wide, together, monkeypatch):
    """The vectors of queries are made once and kept, and all that ranks by them is the same bits."""
    assert exact._find_gpu() == "cuda"
    monkeypatch.setattr(exact, "_find_gpu", lambda: None)
    assert rankings(runs_of(wide), batch=5, threads=2) == together
