"""Shared and isolated execution find the same."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from apps.execution.launching import cancel, launch
from apps.execution.progress import build_event, list_completions
from apps.execution.running import execution, latencies, stages
from apps.execution.running.stages import Stages
from apps.operations.leasing import Lease
from apps.operations.models import Operation
from apps.operations.working import OperationFailedError, wait
from apps.records import provenance
from apps.records.models import Benchmark
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.verdicts.ranked_runs import load_leaderboard
from tests.benchmarks.figures import run_key, values_of
from tests.benchmarks.wide import make_wide
from tests.created import create_benchmark, run_benchmark
from tests.library import ENCODER, make_library

RUNS, QUERIES = 18, 2


def marks_of(operation: Operation) -> list[str]:
    """Return by what execution the events say that the times of runs were measured."""
    return [event["last_completed_run"]["timing"]["execution"] for _, event in list_completions(operation, 0)]


@pytest.mark.thorough
def test_isolated_and_shared_execution_agree_on_every_axis(transactional_db, tmp_path):
    library = make_library(documents=40, queries=QUERIES, filtered=True)
    shared, isolated = (make_wide(library, tmp_path, runs=RUNS, execution=way) for way in ("shared", "isolated"))
    for benchmark in (shared, isolated):
        wait(launch(benchmark))
        assert {run.status for run in benchmark.runs.all()} == {"completed"}
        assert benchmark.runs.filter(failed_queries=0).count() == RUNS
    assert len(run_key(shared)) == RUNS * QUERIES
    assert run_key(isolated) == run_key(shared)
    assert values_of(isolated) == values_of(shared)
    assert len(values_of(shared)) == RUNS


@pytest.mark.parametrize(("way", "rates", "threads"), [("isolated", [None, 100], 1), ("shared", [None], 2)])
def test_an_isolated_search_multiplies_in_one_thread(transactional_db, monkeypatch, way, rates, threads):
    """With more threads, an exact search takes many times as long next to other work; the provenance says how many."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.1)
    monkeypatch.setattr(provenance, "sched_getaffinity", lambda process: {1, 4, 5})
    used, run = set[int](), Stages.run

    def count(searched: Stages, *plan: Any, **options: Any) -> Any:
        if not searched.tolerant:  # a warm-up, which is not timed
            used.add(max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
        return run(searched, *plan, **options)

    monkeypatch.setattr(Stages, "run", count)
    matrix = {"search_modes": ["dense"], "rates": rates}
    with threadpool_limits(2, "blas"):
        benchmark = run_benchmark(make_library(documents=12, queries=4), name="b", matrix=matrix, execution=way)
    assert used == {threads}
    processors = [worker["processor"] for one in benchmark.runs.all() for worker in one.provenance["made_by"]]
    models = {"torch_threads": torch.get_num_threads()}
    assert processors == [{"cores": 3, "numpy_threads": threads, **models}] * len(rates)


def test_the_warm_up_encodes_a_stored_query(transactional_db, monkeypatch, settings):
    """Or the first timed query of a new worker would include the loading of the model."""
    settings.BENCHBENCH_BATCH_SECONDS = 60
    library, encoded, encode = make_library(documents=12, queries=4), list[str](), stages.time_encoding_afresh
    run_benchmark(library, name="a", matrix={"search_modes": ["dense"]})
    monkeypatch.setattr(
        stages,
        "time_encoding_afresh",
        lambda index, texts, *more: [encoded.extend(texts), encode(index, texts, *more)][-1],
    )
    run_benchmark(library, name="b", matrix={"search_modes": ["dense"]}, execution="isolated")
    assert encoded[:2] == [encoded[0]] * 2
    assert len(encoded) == 1 + 4


class TestOneLongBatch:
    @pytest.fixture(autouse=True)
    def told_after_every_query(self, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
        settings.BENCHBENCH_BATCH_SECONDS = 60
        monkeypatch.setattr(execution, "REPORT_SECONDS", 0)
        monkeypatch.setattr(execution, "REPORTING_SHARE", math.inf)

    @pytest.fixture
    def benchmark(self, transactional_db: None) -> Benchmark:
        matrix = {"search_modes": ["dense", "sparse"]}
        library = make_library(documents=12, queries=4)
        return create_benchmark(library, name="b", matrix=matrix, execution="isolated", runs_per_query=2)

    def test_its_runs_have_provisional_means(self, benchmark, monkeypatch):
        report, seen, percents = Lease.report, [], []

        def watched(lease: Lease, finished: int, result: Any = None, **method: Any) -> None:
            report(lease, finished, result, **method)
            if result is not None:
                seen.append(load_leaderboard(Benchmark.objects.get()).rows)
                percents.append(build_event(lease.batch.operation)["percent"])

        monkeypatch.setattr(Lease, "report", watched)
        assert marks_of(wait(launch(benchmark))) == ["isolated"] * 2
        assert [{row.so_far for row in rows} for rows in seen] == [{1}, {2}, {3}, {4}, {4}, {4}, {4}, {4}]
        assert percents == [12.5, 25, 37.5, 50, 62.5, 75, 87.5, 100]
        final = {row.run.pk: dict(row.values) for row in load_leaderboard(Benchmark.objects.get()).rows}
        assert {row.run.pk: row.values for row in seen[-1]} == {run: pytest.approx(row) for run, row in final.items()}

    def test_a_cancelled_run_has_no_progress(self, benchmark, monkeypatch):
        report = Lease.report

        def cancelled(lease: Lease, *message: Any, **method: Any) -> None:
            report(lease, *message, **method)
            if len(message) > 1:
                assert {run["completed_queries"] for run in build_event(lease.batch.operation)["runs"]} == {1}
                cancel(Benchmark.objects.get())
                lease._lost.set()

        monkeypatch.setattr(Lease, "report", cancelled)
        operation = launch(benchmark)
        with pytest.raises(OperationFailedError):
            wait(operation)
        operation.refresh_from_db()
        assert {run["completed_queries"] for run in build_event(operation)["runs"]} == {0}


def test_a_model_that_encodes_differently_is_found(transactional_db, monkeypatch):
    """The vectors that rank are kept; those encoded for their time are held against them."""
    library, matrix = make_library(documents=12, queries=2), {"search_modes": ["dense"]}
    assert marks_of(wait(launch(create_benchmark(library, name="keeps the vectors", matrix=matrix)))) == ["shared"]
    embed = KeywordEncoder.embed_batch

    def otherwise(encoder: KeywordEncoder, *texts: Any, **method: Any) -> Any:
        return np.roll(embed(encoder, *texts, **method), 1, axis=1)

    monkeypatch.setattr(KeywordEncoder, "embed_batch", otherwise)
    run = run_benchmark(library, name="b", matrix=matrix, execution="isolated").runs.get()
    answers = {result.error.partition(": ")[0] for result in run.query_results.all()}
    expected = f"Encoding a query again with {run.index.encoder} gave a vector other than the stored one"
    assert answers == {expected}, run.error_message


def test_a_model_that_hangs_on_a_query_is_overdue(transactional_db, board, monkeypatch):
    embed, seen = KeywordEncoder.embed_batch, []

    def seen_by(encoder: KeywordEncoder, *texts: Any, **method: Any) -> Any:
        if method.get("kind") == "query":
            seen.append(board.note())
        return embed(encoder, *texts, **method)

    benchmark = create_benchmark(
        make_library(documents=12, queries=2), name="b", matrix={"search_modes": ["dense"]}, execution="isolated"
    )
    monkeypatch.setattr(KeywordEncoder, "embed_batch", seen_by)
    wait(launch(benchmark))
    answers = [note.get("sentence", "").partition(" did not")[0] for note in seen]
    assert answers == [f"The encoder {ENCODER}"] * 6, "of each batch: to keep the vector, to warm up, and for the time"
