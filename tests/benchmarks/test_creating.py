"""Benchmarks are made whole or not at all, also while someone deletes their parts; and foreseen before."""

import re
from functools import partial
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Concat

from apps.execution.defining import creating
from apps.execution.defining.creating import BenchmarkError, clone
from apps.execution.defining.previewing import preview
from apps.execution.launching import launch
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import wait
from apps.records.models import Benchmark, Run
from apps.results.exporters.documents import render_text
from apps.retrieval.deleting import delete_index
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import CachedVector, Index
from benchbench.errors import BenchbenchError, ConflictError
from benchbench.ir.planning.matrix import MatrixError
from tests.commands import json_of, output_of
from tests.created import create_benchmark
from tests.library import make_library
from tests.sessions import elsewhere, until_waited_for


def test_it_creates_every_run_beforehand_with_label_and_hash(library):
    matrix = {"search_modes": ["dense", "hybrid"], "rrf_k_values": [40, 60, 80]}
    benchmark = create_benchmark(library, name="b", matrix=matrix)
    runs = list(benchmark.runs.all())
    assert [run.run_order for run in runs] == [1, 2, 3, 4]
    labels = ["dense · top 100", *(f"hybrid · rrf {k} · top 100" for k in (40, 60, 80))]
    assert [run.label for run in runs] == labels
    assert len({run.config_hash for run in runs}) == 4
    assert {run.status for run in runs} == {Run.Status.PENDING}
    assert (benchmark.total_runs, benchmark.primary_k, benchmark.k_values) == (4, 10, [5, 10, 20])
    assert benchmark.measures[0] == "nDCG@5"


@pytest.mark.parametrize(
    "wrong",
    [{"name": " "}, {"execution": "both"}, {"unresolved": "forget"}, {"empty_queries": "one"}, {"runs_per_query": 0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_it_refuses_wrong_policies(library, wrong):
    with pytest.raises(BenchmarkError) as caught:
        create_benchmark(library, **{"name": "b", "matrix": {}, **wrong})
    assert caught.value.field == next(iter(wrong))


def test_it_refuses_a_mode_that_the_index_cannot_search(library):
    wait(build_index(create_index(library.collection, name="words", encoder="")))
    with pytest.raises(MatrixError, match=r"'words': it has no vectors"):
        create_benchmark(library, name="b", matrix={"indexes": ["words"], "search_modes": ["dense"]})


def test_it_refuses_a_mapping_that_is_pending_or_stale(library):
    library.collection.fingerprint = "0" * 64
    library.collection.save()
    with pytest.raises(ConflictError, match="resolve it again"):
        create_benchmark(library, name="b", matrix={})
    Mapping.objects.update(status="pending", dataset_version=None)
    library.refresh_from_db()
    with pytest.raises(BenchbenchError, match="resolve it first"):
        create_benchmark(library, name="b", matrix={})


def test_it_refuses_a_mapping_that_found_no_document(library):
    library.collection.documents.update(external_id=Concat(Value("other "), "external_id"))
    resolve(library)
    library.refresh_from_db()
    assert (library.status, library.mapped_count) == ("partial", 0)
    for act in (preview, partial(create_benchmark, name="b")):
        with pytest.raises(ConflictError, match='None of the 270 judgments of "questions" matches a document'):
            act(library, matrix={})
    assert create_benchmark(library, name="b", matrix={}, allow_missing=True).total_runs


@pytest.fixture
def mapping() -> Mapping:
    return make_library.__wrapped__(queries=2, documents=5)


@pytest.mark.django_db(transaction=True)
def test_a_benchmark_of_a_deleted_index_is_refused(mapping, monkeypatch):
    index, run_of = Index.objects.get(), creating.run_of

    def deleted_first(*pieces: Any) -> Any:
        elsewhere(lambda: delete_index(index)).result(timeout=60)
        return run_of(*pieces)

    monkeypatch.setattr(creating, "run_of", deleted_first)
    with pytest.raises(ConflictError, match="The benchmark was not created: an object that it needs was just deleted"):
        create_benchmark(mapping, name="b", matrix={"search_modes": ["dense"]})
    assert not Benchmark.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_index_deletion_waits_for_a_benchmark_being_created(mapping):
    index = Index.objects.get()
    with transaction.atomic():
        create_benchmark(mapping, name="b", matrix={"search_modes": ["dense"]})
        deleting = elsewhere(lambda: delete_index(Index.objects.get(pk=index.pk)))
        until_waited_for(deleting)
    with pytest.raises(ConflictError, match="is used by"):
        deleting.result(timeout=60)
    assert Index.objects.filter(pk=index.pk).exists()


MATRIX = {"search_modes": ["dense", "sparse", "hybrid"], "rrf_k_values": [20, 60], "score_thresholds": [None, 0.5]}


def test_it_counts_the_distinct_work_and_creates_nothing(library):
    planned = preview(library, MATRIX)
    assert (len(planned.labels), planned.queries) == (8, 12)
    assert planned.distinct == {"encode": 12, "dense": 12, "lexical": 12, "fuse": 24, "rerank_pairs_at_most": 0}
    assert planned.estimate_seconds > 0
    assert planned.resident_bytes == sum(index.stats["bytes"] for index in library.collection.indexes.all()) > 0
    assert (planned.indexes, planned.builds) == (["keywords"], [])
    stats = library.collection.indexes.get().stats
    cut = preview(library, MATRIX | {"dimensions": [None, 2, 1]})
    assert cut.resident_bytes == planned.resident_bytes + 4 * (2 + 1) * stats["num_vectors"]
    assert not Benchmark.objects.exists()


def test_isolated_execution_shares_no_work(library):
    """Twelve queries, twice, in each of three runs; the exact counterpart of an approximate run once."""
    matrix = {"search_modes": ["dense", "hybrid"], "ann": ["exact", "hnsw(ef_search=40)"], "rrf_k_values": [20]}
    planned = preview(library, matrix, execution="isolated", runs_per_query=2)
    assert len(planned.labels) == 4
    assert (planned.distinct["encode"], planned.distinct["lexical"]) == (4 * 24, 2 * 24)
    assert planned.distinct["dense"] == 4 * 24 + 2 * 12
    assert planned.estimate_seconds > 4 * preview(library, {"search_modes": ["dense"]}).estimate_seconds
    assert "4 runs over 12 queries, each run alone:" in planned.explanation
    assert "instead of" not in planned.explanation


def test_open_loops_last_until_their_last_request(library):
    """Loops of 12 queries last five seconds each at 20/s and 10/s, and 12 at 1/s: 100, 50 and 12 searches."""
    facts = json_of(
        *("preview_benchmark", "library", "--modes", "sparse", "--rate", "20/s,10/s,1/s"),
        *("--execution", "isolated"),
    )
    assert facts["estimate_seconds"] == pytest.approx(5 + 5 + 12, abs=0.5)
    assert facts["distinct"]["lexical"] == 100 + 50 + 12
    with pytest.raises(CommandError, match="only isolated execution"):
        output_of("preview_benchmark", "library", "--rate", "20/s")


def test_estimate_uses_local_measured_costs_once_available(library):
    rough = preview(library, {"search_modes": ["dense"]}).estimate_seconds
    wait(launch(create_benchmark(library, name="b", matrix={"search_modes": ["dense"]})))
    CachedVector.objects.update(encode_ms=1000)
    measured = preview(library, {"search_modes": ["dense"]}).estimate_seconds
    assert rough < 1
    assert 12 < measured < 13


def test_the_command_prints_it(library):
    facts = json_of("preview_benchmark", "library", "--modes", "dense,hybrid")
    assert (facts["total_runs"], facts["queries"]) == (2, 12)
    assert facts["distinct"] == {"encode": 12, "dense": 12, "lexical": 12, "fuse": 12, "rerank_pairs_at_most": 0}
    assert facts["estimate_seconds"] > 0
    output = output_of("preview_benchmark", "library")
    assert "3 runs over 12 queries" in output
    isolated = output_of("preview_benchmark", "library", "--execution", "isolated")
    assert re.search(r"At least [\d.]+ s with one worker", isolated), "costs of shared batches are less"
    assert re.search(r"About [\d.]+ s with one worker, and [\d.]+\sKB of its memory for the index keywords", output)


def test_preview_lists_the_builds_beyond_the_estimate(library):
    ann = ["hnsw(ef_search=100)", "hnsw(ef_search=200)", "ivfflat(lists=4)"]
    matrix = {"search_modes": ["dense", "sparse"], "ann": ann, "lexical": ["fts"]}
    hnsw, ivfflat, words = preview(library, matrix).builds
    assert hnsw == "hnsw (m=16, ef_construction=64, storage=vector) over 30 vectors of keywords"
    assert ivfflat == "ivfflat (lists=4, storage=vector) over 30 vectors of keywords"
    assert words == "fts of 30 chunks of keywords"
    wait(launch(create_benchmark(library, name="b", matrix=matrix)))
    assert preview(library, matrix).builds == []


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["--top-k", "5"], "--top-k: 5 is less than the greatest k to measure at, 20"),
        (["--k", "0"], "--k: 0 is not a whole number"),
        (["--rrf-k", "60,60"], "--rrf-k: 60 occurs more than once"),
        (["--thresholds", "7"], "--thresholds: 7.0 is not a number from 0 to 1"),
        (["--top-k", "20", "--rerank", "on", "--rerank-depth", "30"], "--rerank-depth: 30 is more than the 20"),
        (["--indexes", "other"], "--indexes: 'library' has no ready index"),
        (["--top-k", "20", "--k", "5,50"], "--top-k: 20 is less than"),
    ],
)
def test_the_command_names_the_options_that_were_typed(library, typed, message):
    for command in ("preview_benchmark", "run_benchmark"):
        with pytest.raises(CommandError) as caught:
            call_command(command, "library", *typed)
        assert str(caught.value).startswith(message)


def test_a_tag_of_more_than_50_characters_is_refused(library):
    with pytest.raises(CommandError, match=r"'x{50}' is not a tag: give 1 to 50 printable characters\."):
        call_command("run_benchmark", "library", "--tags", "nightly," + "x" * 51)
    assert not Benchmark.objects.exists()


def test_the_report_names_the_index_that_was_searched(library):
    (run,) = json_of("run_benchmark", "library", "--modes", "dense", "--wait")["runs"]
    assert (run["config"]["index"], run["index"]) == (None, "keywords")
    assert "completed, index keywords" in render_text(Benchmark.objects.get())


def test_preview_warns_of_approximation_below_the_depth(library):
    approximate = ["compressed(rescore=20)", "hnsw(ef_search=20)", "compressed(rescore=300)"]
    one, second = preview(library, {"ann": approximate, "candidates": [100]}).warnings
    assert "compressed(rescore=20): a query needs 100 chunks" in one
    assert "hnsw(ef_search=20) finds at most 20 chunks" in second


def test_preview_warns_when_rerank_depth_limits_measured_results(library):
    matrix = {"use_reranker": [False, True], "rerank_depths": [5, 15, 20], "k_values_for_metrics": [5, 20]}
    (warning,) = preview(library, matrix).warnings
    assert warning.startswith("2 reranked runs return only the 5 or 15 chunks per query that the reranker reads.")
    assert preview(library, {**matrix, "rerank_depths": [20]}).warnings == []
    options = ["--modes", "dense", "--rerank", "on", "--rerank-depth", "5"]
    output = output_of("preview_benchmark", "library", *options)
    assert "1 reranked run returns only the 5 chunks per query that the reranker reads" in output


def test_the_longest_names_make_a_benchmark(library):
    name = "\N{CJK UNIFIED IDEOGRAPH-4E00}" * 200
    wait(build_index(create_index(library.collection, name=name, encoder="")))
    matrix = {"indexes": [name], "search_modes": ["sparse"], "lexical": ["bm25", "fts"], "candidates": [200]}
    benchmark = create_benchmark(library, name=name, matrix=matrix, tags=["t" * 50])
    label = benchmark.runs.get(run_order=1).label
    Run.objects.update(label=label * 10)  # with a model for the text of the query, a reranker and a store
    wait(launch(benchmark))
    assert {run.status for run in benchmark.runs.all()} == {Run.Status.COMPLETED}
    assert clone(benchmark).name == f"{name[:194]}, copy"
    with pytest.raises(BenchmarkError, match="at most 200 characters, not 201"):
        create_benchmark(library, name="n" * 201, matrix=matrix)
