"""A run's result is a function of its own configuration alone: not of its neighbours, the batch or the threads."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from threadpoolctl import threadpool_limits

from apps.datasets.models import Query
from apps.execution.running.pairs import PinnedRerankers
from apps.execution.running.rankings import build_final_lists
from apps.execution.running.stages import Stages
from apps.records.lists.final import FinalList
from apps.records.models import Benchmark, Run
from apps.records.planning import add_sources, build_shared_lists, plan_of
from apps.retrieval.search import exact
from apps.retrieval.search.ann_indexes import make_ann_index
from apps.retrieval.search.full_text import make_full_text
from apps.retrieval.search.open_indexes import open_index
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.stages import DenseStage, LexicalStage
from benchbench.process import reset_all
from tests.benchmarks.wide import make_wide
from tests.library import make_library
from tests.services import empty_tables

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
        reset_all()
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
            if isinstance(stage, LexicalStage) and stage.lexical == "fts":
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
    hits: Rankings = {}
    with on_threads(threads):
        for start in range(0, len(queries), batch):
            piece = queries[start : start + batch]
            outcomes = Stages(piece, indexes, PinnedRerankers(runs[0].benchmark), tolerant=False).run(plan)
            shared = build_shared_lists(runs, plan)
            plans = {each.source: each.plans for each in shared}
            for one in build_final_lists(shared, outcomes, [query.pk for query in piece], indexes, max_k=10):
                assert not one.facts.error
                for run, length in zip(plans[one.key.source], one.lengths, strict=True):
                    hits[run.run_key, one.key.query_id] = head(one, length)
    return hits


@pytest.mark.django_db
@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (7, 1), (300, 2)])
def test_rankings_are_equal_in_any_batch(wide, together, batch, threads):
    """On two threads also in batches of 5, which is `together`, and of 7, which is alone."""
    assert len(together) == RUNS * QUERIES
    assert rankings(runs_of(wide), batch=batch, threads=threads) == together


@pytest.mark.django_db
def test_rankings_are_bit_equal_alone_and_in_the_matrix(wide, together):
    alone = {key: hit for run in runs_of(wide) for key, hit in rankings([run], batch=7, threads=2).items()}
    assert alone == together


@pytest.mark.gpu
@pytest.mark.django_db
def test_rankings_are_equal_on_a_gpu(wide, together, monkeypatch):
    """The vectors of queries are made once and kept, and all that ranks by them is the same bits."""
    assert exact.find_gpu() == "cuda"
    monkeypatch.setattr(exact, "find_gpu", lambda: None)
    assert rankings(runs_of(wide), batch=5, threads=2) == together
