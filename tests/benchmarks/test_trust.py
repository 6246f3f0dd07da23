"""What must not make a figure wrong, or one run harm another; and what no model, file or store can have given."""

import io
import json
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.collections.importing import import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.models import Query
from apps.execution.launching import cancel, launch, retry
from apps.execution.progress import build_event, list_completions
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.operations.working import perform_batch, wait
from apps.records.models import Benchmark, Evaluation, PairList, Run, StageList
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.indexing import build_index, create_index
from apps.retrieval.models import CachedVector, LexicalPiece
from apps.retrieval.rerankers import PairScores
from apps.retrieval.rerankers.late_interaction import LateInteractionReranker
from apps.retrieval.search.open_indexes import OpenIndex
from benchbench.errors import ConflictError
from benchbench.ir.planning.matrix import MatrixError
from benchbench.ir.records import ScoredList
from benchbench.process import reset_all
from tests.benchmarks.figures import run_key
from tests.created import create_benchmark, list_warnings, run_benchmark
from tests.kept import made_once
from tests.library import ENCODER, make_library
from tests.rankings import change_rankings, delete_rankings


def change_documents(library: Mapping) -> None:
    stored = library.collection.documents.values_list("external_id", "title", "text")[5:]
    records = [DocumentRecord(external_id=key, title=title, text=text) for key, title, text in stored]
    import_documents(library.collection, records)
    library.refresh_from_db()
    resolve(library)
    library.refresh_from_db()


def test_index_of_changed_documents_is_not_searched(library):
    before = create_benchmark(library, name="before", matrix={})
    change_documents(library)
    with pytest.raises(MatrixError, match="before its documents changed"):
        create_benchmark(library, name="after", matrix={})
    with pytest.raises(MatrixError, match="'keywords' of 'library' was built before"):
        create_benchmark(library, name="after", matrix={"indexes": ["keywords"]})
    with pytest.raises(ConflictError, match="Build a new version of it"):
        launch(before)
    wait(build_index(create_index(library.collection, name="keywords", encoder=ENCODER)))
    assert create_benchmark(library, name="after", matrix={"indexes": ["keywords"]}).runs.get().index.version == 2


def test_a_worker_with_another_encoder_gives_back(library, monkeypatch):
    benchmark = create_benchmark(library, name="b", matrix={})
    operation = launch(benchmark)
    batch = operation.batches.earliest("ordinal")
    with monkeypatch.context() as patched:
        patched.setattr(KeywordEncoder, "revision", "2")
        reset_all()
        perform_batch(batch.pk, owner="unfit")
    reset_all()
    operation = wait(operation)
    assert list(operation.unfit_workers) == ["unfit"]
    run = benchmark.runs.get()
    assert (run.status, run.failed_queries) == ("completed", 0)


def test_runs_of_one_benchmark_are_held_against_one_truth(library, monkeypatch):
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse"]})
    sparse = benchmark.runs.get(config__search_mode="sparse")
    Run.objects.filter(pk=sparse.pk).update(status=Run.Status.FAILED)
    delete_rankings(sparse.query_results.all())
    library.resolutions.filter(judgment__grade=1).update(outcome="not_found", document=None)
    wait(retry(benchmark))
    counts = set(Evaluation.objects.values_list("unresolved_count", flat=True))
    assert len(counts) == 1
    assert counts != {0}


@made_once
def make_pieces() -> Mapping:
    """The library, in pieces of a word too."""
    mapping = make_library()
    wait(build_index(create_index(mapping.collection, name="pieces", encoder=ENCODER, chunk_parameters={"size": 6})))
    return mapping


@pytest.mark.parametrize(
    "matrix",
    [
        {"k_values_for_metrics": [5]},
        {"candidates": [3], "search_modes": ["hybrid"]},
        {"search_modes": ["sparse"], "top_k_values": [10]},
    ],
    ids=["chunks of one document", "few candidates", "top_k"],
)
def test_run_warns_when_depth_leaves_too_few_documents(transactional_db, matrix):
    library = make_pieces()
    base = {"top_k_values": [10], "k_values_for_metrics": [10], "indexes": ["pieces"]}
    warning, *further = list_warnings(run_benchmark(library, name="b", matrix=base | matrix).runs.get())
    assert "fewer than 10 documents" in warning
    assert all("no word that BM25 reads" in one for one in further), "pieces of six letters"


def test_run_does_not_warn_when_nothing_more_exists(library):
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    assert [*map(list_warnings, benchmark.runs.all())] == [[], [], []]


def test_a_broken_index_fails_only_its_own_runs(library):
    wait(build_index(create_index(library.collection, name="other", chunk_parameters={"size": 10})))
    matrix = {"indexes": ["keywords", "other"], "search_modes": ["sparse"]}
    benchmark = create_benchmark(library, name="b", matrix=matrix)
    broken = benchmark.runs.get(config__index="other").index
    LexicalPiece.objects.filter(lexical_index=broken.lexical_index).update(data=b"damaged")
    reset_all()
    wait(launch(benchmark))
    healthy, failed = benchmark.runs.order_by("run_order")
    assert (healthy.status, failed.status) == (Run.Status.COMPLETED, Run.Status.FAILED)
    assert healthy.failed_queries == 0


def test_a_retry_keeps_the_lists_that_finished_runs_read(library):
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["sparse"], "top_k_values": [20, 25]})
    before = {row.query_id: row.chunk_ids for row in StageList.objects.all()}
    shallow = benchmark.runs.get(config__top_k=20)
    change_rankings(shallow.query_results.all()[:1], error="It timed out.")
    Run.objects.filter(pk=shallow.pk).update(failed_queries=1)
    wait(retry(benchmark))
    assert {row.query_id: row.chunk_ids for row in StageList.objects.all()} == before
    assert max(map(len, before.values())) > 20


def test_logical_encodings_are_counted_per_run(library):
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    assert [run.embed_calls for run in benchmark.runs.all()] == [12, 0, 12]
    (made_by,) = benchmark.runs.first().provenance["made_by"]
    assert made_by["device"]
    assert made_by["libraries"]["numpy"]


def test_command_prints_report_and_fails_if_every_run_failed(library, tmp_path):
    out = io.StringIO()
    reranker = ("--rerank", "on", "--reranker", str(tmp_path))
    with pytest.raises(CommandError, match="The benchmark failed"):
        call_command("run_benchmark", "library", "--modes", "dense", *reranker, "--wait", "--json", stdout=out)
    report = json.loads(out.getvalue())
    assert (report["status"], report["runs"][0]["status"]) == ("failed", "failed")
    assert report["runs"][0]["metrics_flat"] == {}


def test_event_of_deleted_benchmark_is_complete_with_final_status(library):
    benchmark = create_benchmark(library, name="b", matrix={})
    operation = launch(benchmark)
    fields = set(build_event(operation))
    cancel(benchmark)
    benchmark.delete()
    operation.refresh_from_db()
    event = build_event(operation)
    assert (set(event), event["benchmark_id"], event["stage"]) == (fields, None, "completed")


def test_ended_operation_stays_ended_after_a_restart(library):
    benchmark = create_benchmark(library, name="b", matrix={})
    first = launch(benchmark)
    cancel(benchmark)
    second = launch(benchmark)
    first.refresh_from_db()
    assert (build_event(first)["status"], build_event(first)["stage"]) == ("cancelled", "completed")
    wait(second)
    assert build_event(first)["status"] == "cancelled"


def test_runs_are_announced_once_in_run_order(library):
    benchmark = create_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    operation = launch(benchmark)
    benchmark.runs.filter(run_order=2).update(status=Run.Status.FAILED, error_message="Its index could not be made.")
    assert list_completions(operation, 0) == []
    wait(operation)
    completions = list_completions(operation, 0)
    assert [order for order, _ in completions] == [1, 2, 3]
    assert {(piece["status"], piece["stage"]) for _, piece in completions} == {("running", "evaluating")}
    assert [(segment["completed_runs"], segment["failed_runs"]) for _, segment in completions] == [
        (1, 0),
        (1, 1),
        (2, 1),
    ]
    operation.refresh_from_db()
    assert (build_event(operation)["status"], build_event(operation)["stage"]) == ("completed", "completed")
    cancelled = create_benchmark(library, name="c", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    operation = launch(cancelled)
    cancelled.runs.filter(run_order=2).update(status=Run.Status.FAILED, error_message="Its index could not be made.")
    cancel(cancelled)
    (failed,) = list_completions(operation, 0)
    assert failed[1]["last_completed_run"]["error_message"] == "Its index could not be made."


def errors(benchmark: Benchmark) -> dict[str, str]:
    (run,) = benchmark.runs.all()
    return {result.query.text: result.error for result in run.query_results.select_related("query") if result.error}


def run(mapping: Mapping, **options: Any) -> Benchmark:
    return run_benchmark(mapping, name="b", matrix={"top_k_values": [20], **options.pop("matrix", {})}, **options)


@pytest.mark.parametrize("factor", [np.nan, 0, 0.9], ids=["not a number", "zeros", "another length"])
def test_bad_query_vectors(library, monkeypatch, factor, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 5  # all queries in one batch
    bad = Query.objects.earliest("pk").text
    embed = KeywordEncoder.embed_batch

    def broken(encoder: KeywordEncoder, texts: Any, **options: Any) -> Any:
        factors = [[factor if text == bad else 1] for text in texts]
        return embed(encoder, texts, **options) * np.array(factors, np.float32)

    with monkeypatch.context() as patched:
        patched.setattr(KeywordEncoder, "embed_batch", broken)
        answer = errors(run(library))
    assert answer.keys() == {bad}
    assert f"made a vector of the query '{bad}' that is" in answer[bad]
    distinct = set(Query.objects.values_list("text", flat=True))
    assert CachedVector.objects.filter(space__kind="query").count() == len(distinct) - 1
    later = run(library)
    assert (errors(later), later.runs.get().failed_queries) == ({}, 0)


@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_a_bad_rerank_score_fails_its_query(library, monkeypatch, execution):
    bad = Query.objects.earliest("pk").text
    score = LateInteractionReranker.score

    def broken(reranker: LateInteractionReranker, query: str, texts: Any) -> PairScores:
        created = score(reranker, query, texts)
        return PairScores(created.scores * (np.nan if query == bad else 1), created.threshold_scores)

    options = {"matrix": {"use_reranker": [True]}, "execution": execution}
    with monkeypatch.context() as patched:
        patched.setattr(LateInteractionReranker, "score", broken)
        benchmark = run(library, **options)
    assert errors(benchmark).keys() == {bad}
    assert "did not give a finite number for each of 20 chunks" in errors(benchmark)[bad]
    if execution == "shared":
        assert not PairList.objects.filter(benchmark=benchmark, query__text=bad).exists()
        assert PairList.objects.filter(benchmark=benchmark).count() == Query.objects.exclude(text=bad).count()
    sound = run(library, **options)
    wait(retry(benchmark))
    assert errors(benchmark) == {}
    assert run_key(benchmark) == run_key(sound)


@pytest.mark.parametrize(
    ("ids", "scores", "message"),
    [
        ([0, 30], [1, 0.5], "chunks outside its 30"),
        ([0, -1], [1, 0.5], "chunks outside its 30"),
        ([0, 1, 2], [1, 0.5], "chunks outside its 30"),
        ([0, 1], [np.inf, 0.5], "a score that is not a finite number"),
    ],
)
def test_impossible_result_list_is_an_error(library, monkeypatch, ids, scores, message):
    lists = [ScoredList(np.array(ids), np.array(scores, float))]
    monkeypatch.setattr(OpenIndex, "find_nearest", lambda index, queries, *args, **options: lists * len(queries))
    benchmark = run_benchmark(library, name="b", matrix={})
    assert benchmark.runs.get().status == "failed"
    result = errors(benchmark).values()
    assert len(result) == len(set(Query.objects.values_list("text", flat=True)))
    assert all(f"The stage dense(exact) returned {message}: the index" in error for error in result)
