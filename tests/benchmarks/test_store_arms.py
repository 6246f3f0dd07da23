"""Runs by a store: the fastest of them, and one that is exact. What each store finds is for tests/retrieval."""

from functools import partial
from statistics import fmean

import pytest
from django.urls import reverse

from apps.datasets.models import Query
from apps.execution.launching import launch, retry
from apps.operations.working import wait
from apps.records.measuring.approximations import load_lists
from apps.results.exporters.documents import render_text
from apps.retrieval.availability import UnavailableError
from apps.retrieval.deleting import delete_index
from apps.retrieval.models import Index
from apps.retrieval.search.approximate import locate_collections
from apps.retrieval.search.arms import find_missing_arm, make_arm
from apps.retrieval.search.open_indexes import open_index
from apps.retrieval.stores.faiss_store import FaissStore
from benchbench.errors import UnfitWorkerError
from benchbench.ir.planning.ann import Ann
from benchbench.ir.planning.matrix import MatrixError
from benchbench.ir.ranking import recall
from tests.benchmarks.approximated import benchmark_of, rankings_of, run_matrix, run_of, work_one
from tests.created import list_warnings
from tests.library import make_library
from tests.retrieval.arms import require_installed

ARMS = ("sqlite_vec:exact", "pgvector:exact", "faiss:hnsw(ef_search=1000)")


@pytest.fixture(autouse=True)
def needs() -> None:
    require_installed(*ARMS)


@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_it_is_held_against_exact_search_in_memory(library, execution):
    narrow = "faiss:ivfpq(lists=8, m=1, bits=4)"
    benchmark = run_matrix(library, ann=["memory:exact", *ARMS, narrow], execution=execution)
    assert benchmark.status == "completed"
    assert run_of(benchmark, "exact").label == "dense · top 20"
    rankings = rankings_of(benchmark)
    for ann in ARMS:
        run = run_of(benchmark, ann)
        assert run.label == f"dense · {ann} · top 20"
        assert list_warnings(run) == []
        if ann.endswith(":exact"):  # of equally near chunks a graph finds any
            assert rankings[ann] == rankings["exact"]
        facts = run.provenance["ann"]
        assert ([one["mean"] for one in facts["recall"]], facts["ndcg"]["cost"]) == ([1, 1], 0)
    facts = run_of(benchmark, "faiss:hnsw(ef_search=1000)").provenance["ann"]
    assert (facts["store"], facts["index"]) == ("faiss", "faiss_hnsw_32_40_float32")
    options = {"m": 32, "ef_construction": 40, "ef_search": 1000, "storage": "float32", "rescore": 1}
    assert facts["settings"] == options
    assert facts["bytes"] > 0
    assert run_of(benchmark, narrow).provenance["ann"]["recall"][-1]["mean"] < 1


def test_filters_apply_inside_the_search(transactional_db):
    benchmark = run_matrix(make_library(filtered=True), ann=["exact", *ARMS])
    result = rankings_of(benchmark)
    assert len(result) == 4
    assert result["sqlite_vec:exact"] == result["pgvector:exact"] == result["exact"]
    stored = {ann: [len(ids) for ids in rankings] for ann, rankings in result.items()}
    assert stored["faiss:hnsw(ef_search=1000)"] == stored["exact"]
    assert set(stored["exact"]) == {15, 20}, "of 30 documents, every second is green"
    for ann in ("sqlite_vec:exact", "pgvector:exact"):  # which themselves find all that a filter admits
        run = run_of(benchmark, ann)
        assert (list_warnings(run), run.provenance["ann"]["notes"]) == ([], {})


def test_store_unable_to_hold_the_vectors_is_rejected(library):
    with pytest.raises(MatrixError, match=r"ann: faiss:ivfpq cannot search .* its m, 16, must divide the 11 dim"):
        benchmark_of(library, ann=["faiss:ivfpq"])


def test_one_that_is_not_installed_is_refused(library, monkeypatch):
    created, failed = (benchmark_of(library, ann=["faiss:exact"]) for _ in range(2))
    failed.runs.update(status="failed")
    launched = benchmark_of(library, ann=["faiss:exact"])
    operation = launch(launched)
    monkeypatch.setattr(FaissStore, "packages", {"faiss-cpu": "no_such_module"})
    mends = r"the store faiss needs the package faiss-cpu: pip install 'benchbench\[faiss\]'"
    for act in (partial(benchmark_of, library, ann=["faiss:hnsw"]), partial(launch, created), partial(retry, failed)):
        with pytest.raises(UnavailableError, match=mends):
            act()
    with pytest.raises(UnfitWorkerError, match=mends):  # which gives the batch to another worker
        open_index(Index.objects.get()).collections.ensure_filled(Ann.parse("faiss:exact"))
    work_one(operation)
    assert operation.batches.get().state == "pending"
    assert launched.runs.get().status == "indexing"


def test_collection_build_is_announced_and_deleted_with_the_index(library):
    index = Index.objects.get()
    assert find_missing_arm(index, Ann.parse("faiss:hnsw(m=8)")) == (
        f"{index.pk} faiss_hnsw_8_40_float32",
        f"faiss:hnsw (m=8, ef_construction=40, storage=float32) over {index.chunk_set.chunk_count} vectors of {index}",
    )
    make_arm(index, Ann.parse("faiss:hnsw(m=8)"), 10)
    assert find_missing_arm(index, Ann.parse("faiss:hnsw(m=8, ef_search=50)")) is None
    folder = locate_collections(index)
    assert folder.exists()
    delete_index(index)
    assert not folder.exists()


def test_run_whose_store_mostly_fell_back_fails(transactional_db):
    arms = ["faiss:exact", "faiss:hnsw(m=2, ef_search=1)"]
    library = make_library(filtered=True)
    Query.objects.update(filters={"colour": "green"})
    benchmark = run_matrix(library, ann=arms)
    complete, narrow = (run_of(benchmark, ann) for ann in arms)
    assert (complete.status, list_warnings(complete)) == ("completed", [])
    assert narrow.status == "failed"
    assert "so exact search replaced it. Its values would be those of exact search" in narrow.error_message


def test_collection_damaged_between_batches_is_repaired(library):
    benchmark = benchmark_of(library, ann=["exact", "sqlite_vec:exact"])
    operation = launch(benchmark)
    work_one(operation)
    work_one(operation)
    (file,) = locate_collections(Index.objects.get()).rglob("*.sqlite")
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(size // 2)
        opened.write(bytes(size - size // 2))
    wait(operation)
    run = run_of(benchmark, "sqlite_vec:exact")
    assert (run.status, run.failed_queries, list_warnings(run)) == ("completed", 0, [])
    result = rankings_of(benchmark)
    assert result["sqlite_vec:exact"] == result["exact"]


def test_recall_is_of_the_queries_that_the_store_answered(transactional_db):
    """Neither of one that was searched exactly instead, nor of one whose filter admits nothing."""
    arm = "faiss:hnsw(m=2, ef_search=1)"
    library = make_library(filtered=True)
    blue = Query.objects.order_by("pk").last()
    Query.objects.filter(pk=blue.pk).update(filters={"colour": "blue"})
    benchmark = run_matrix(library, ann=[arm])
    run = run_of(benchmark, arm)
    exactly = set(Query.objects.filter(filters={"colour": "green"}).values_list("pk", flat=True))
    facts = run.provenance["ann"]
    assert (run.status, facts["notes"]["searched_exactly"]) == ("completed", len(exactly))
    hits, truth = load_lists(benchmark, f"dense({arm}, 20)"), load_lists(benchmark, "dense(exact)")
    answered = hits.keys() - exactly - {blue.pk}
    shares = [recall(hits[query], truth[query], 10) for query in answered]
    at_ten, _ = facts["recall"]
    assert (at_ten["queries"], at_ten["mean"], at_ten["worst"]) == (7, pytest.approx(fmean(shares)), min(shares))
    assert f"recall@10 {fmean(shares):.3f} in 7 queries (worst {min(shares):.2f})" in render_text(benchmark)


def test_recall_of_no_query_is_none(transactional_db, admin_client):
    library = make_library()
    Query.objects.update(filters={"colour": "blue"})
    benchmark = run_matrix(library, ann=["sqlite_vec:exact"])
    run = run_of(benchmark, "sqlite_vec:exact")
    assert (run.status, [text for text in run.warnings if "sqlite_vec" in text]) == ("completed", [])
    none = {"mean": None, "worst": None, "worst_query": None, "queries": 0}
    assert run.provenance["ann"]["recall"] == [{"k": k, **none} for k in (10, 20)]
    page = admin_client.get(reverse("admin:benchmark_results", args=[benchmark.pk])).content.decode()
    assert "recall@10 – (the store answered no query)" in page
