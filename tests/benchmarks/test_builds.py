"""Approximate indexes that are built again while a benchmark is unfinished: its lists come from one, or it says so."""

import shutil

import pytest
from django.db import connection

from apps.execution.launching import cancel, launch
from apps.execution.running.builds import load_builds
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from apps.retrieval.models import Index
from apps.retrieval.search.approximate import locate_collections
from apps.retrieval.search.arms import find_build, make_arm
from benchbench.ir.planning.ann import Ann
from benchbench.process import reset_all
from tests.benchmarks.approximated import benchmark_of, rankings_of, run_of, work_one
from tests.library import make_library
from tests.retrieval.arms import LEARNS, WIDEST, require_installed

HNSW = "hnsw(ef_search=2)"
GRAPHS = ("pgvector:hnsw", "faiss:hnsw", "chromadb:hnsw")


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library(documents=60, queries=12)


def rebuild(index: Index) -> None:
    """Build the approximate indexes again, in PostgreSQL as a restore does, and in folders as another machine does."""
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX TABLE {index.vector_table}")
    reset_all()
    shutil.rmtree(locate_collections(index), ignore_errors=True)


def builds_of(benchmark: Benchmark) -> set[str]:
    return {build for by_query in load_builds(benchmark).values() for build in by_query.values()}


@pytest.mark.parametrize("method", sorted(WIDEST.keys() - {*LEARNS}))
def test_every_method_names_its_build(library, method):
    """It is the same after opening again; of a method that compares all vectors it does not matter."""
    require_installed(WIDEST[method])
    setting, index = Ann.parse(WIDEST[method]), Index.objects.get()
    facts = make_arm(index, setting, 10)
    build = find_build(index, setting)
    assert bool(build) == (not setting.compares_all)
    assert not build or facts["build"] == build
    reset_all()
    assert find_build(index, setting) == build
    rebuild(index)
    make_arm(index, setting, 10)
    if method in GRAPHS:
        assert find_build(index, setting) != build or setting.store == "faiss", "built by several threads, or again"


def start(library: Mapping, **matrix: object) -> Benchmark:
    """Launch a benchmark, and do its preparing batch and one batch of queries."""
    benchmark = benchmark_of(library, **matrix)
    operation = launch(benchmark)
    work_one(operation)
    work_one(operation)
    return benchmark


def test_run_says_that_its_index_was_built_again_meanwhile(library):
    benchmark = start(library, ann=[HNSW])
    rebuild(Index.objects.get())
    wait(benchmark.operation)
    run = benchmark.runs.get()
    assert len(builds_of(benchmark)) == 2
    assert sum(run.provenance["ann"]["builds"].values()) == 12
    assert run.provenance["ann"]["build"] in run.provenance["ann"]["builds"]
    [warning] = [warning for warning in run.warnings if "builds" in warning]
    assert warning.startswith(f"2 builds of the index of {HNSW} were searched, for ")


def test_unchanged_index_is_one_build(library):
    benchmark = start(library, ann=[HNSW])
    wait(benchmark.operation)
    run = benchmark.runs.get()
    assert run.provenance["ann"]["builds"] == {run.provenance["ann"]["build"]: 12}
    assert not [warning for warning in run.warnings if "builds" in warning]


@pytest.mark.parametrize("ann", [HNSW, "faiss:hnsw(m=2, ef_search=1)"])
def test_resumed_benchmark_searches_a_new_build_for_all_queries(library, ann):
    require_installed(ann)
    benchmark = start(library, ann=[ann])
    cancel(benchmark)
    rebuild(Index.objects.get())
    wait(launch(benchmark))
    run = run_of(benchmark, ann)
    assert run.status == Run.Status.COMPLETED
    assert len(builds_of(benchmark)) == 1
    assert not [warning for warning in run.warnings if "builds" in warning]
    fresh = benchmark_of(library, ann=[ann])
    wait(launch(fresh))
    assert rankings_of(benchmark)[ann] == rankings_of(fresh)[ann]


def test_lists_of_completed_runs_are_kept(library):
    benchmark = benchmark_of(library, ann=[HNSW], search_modes=["dense", "hybrid"])
    wait(launch(benchmark))
    dense, hybrid = run_of(benchmark, HNSW), run_of(benchmark, HNSW, "hybrid")
    before = [row.document_ids for row in dense.query_results.order_by("query_id")]
    values = dense.evaluations.get().values
    Run.objects.filter(pk=hybrid.pk).update(status=Run.Status.CANCELLED)
    rebuild(Index.objects.get())
    wait(launch(benchmark))
    hybrid.refresh_from_db()
    assert hybrid.status == Run.Status.FAILED
    assert hybrid.error_message.startswith(f"The index of {HNSW} was built again since runs that share its lists")
    dense = run_of(benchmark, HNSW)
    assert [row.document_ids for row in dense.query_results.order_by("query_id")] == before
    assert dense.evaluations.get().values == values
