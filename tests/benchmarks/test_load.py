"""Runs with a rate: open loops through the whole path of a search, their latencies, and what they find."""

import threading
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from apps.execution.defining.previewing import preview
from apps.execution.launching import launch
from apps.execution.progress import build_event
from apps.execution.running import latencies, stages
from apps.execution.running.latencies import Loop, Timed, build_record, merge_records
from apps.execution.running.load import LoadedRun, send_all
from apps.execution.running.timing import PERCENTS
from apps.operations.working import wait
from apps.records.comparability import find_differences
from apps.records.models import Benchmark
from apps.records.models.timing import LoopRecall, OpenLoop
from apps.retrieval.indexing import build_index, create_index
from apps.verdicts.gates.evidence import Ground, MeasuredRun, build_evidence
from benchbench.ir.planning.matrix import MatrixError
from benchbench.ir.rules import Rules
from tests.created import create_benchmark, run_benchmark
from tests.library import make_library
from tests.tiny_models import save_cross_encoder, save_encoder

SERVICE = 0.02  # seconds


class Path:
    """A path of a search that takes SERVICE seconds, and counts how many are on it."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.together = Counter[str]()
        self._lock = threading.Lock()

    def send(self, number: int) -> int:
        with self._lock:
            self.numbers.append(number)
            self.together["now"] += 1
            self.together["most"] = max(self.together["most"], self.together["now"])
        time.sleep(SERVICE)
        with self._lock:
            self.together["now"] -= 1
        return number

    def run(self, rate: float, queries: int = 10, **options: Any) -> Any:
        loop = Loop.build("run", rate, queries, seed="1")
        return loop, send_all(
            loop, self.send, lambda position, number: (position, number), **({"check": bool} | options)
        )


def summary_of(loop: Loop, requests: Any) -> OpenLoop:
    record = build_record(loop, [request.timed for request in requests], sent=len(requests), threads=1)
    return merge_records([record])


class TestAnOpenLoop:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.6)

    def test_each_request_is_sent_when_it_is_due(self):
        path = Path()
        loop, requests = path.run(50)
        assert [request.position for request in requests] == list(range(30)), "ten queries, until the time is full"
        assert all(request.result == (request.position, loop.schedule[request.position]) for request in requests)
        assert all(sorted(loop.schedule[start : start + 10]) == list(range(10)) for start in (0, 10, 20))
        for earlier, later in pairwise(requests):
            assert later.due - earlier.due == pytest.approx(1 / 50)
        assert all(request.began >= request.due and request.ended - request.began >= SERVICE for request in requests)
        summary = summary_of(loop, requests)
        assert (summary.requests, summary.unsent, summary.offered) == (30, 0, 50)
        assert summary.latency_ms["p50"] >= 1000 * SERVICE * 0.999

    def test_overload_is_seen_as_overload(self, settings):
        settings.BENCHBENCH_LOAD_THREADS = 1
        path = Path()
        loop, requests = path.run(100)
        summary = summary_of(loop, requests)
        assert path.together["most"] == 1
        assert summary.achieved <= 1 / SERVICE
        assert summary.waiting_ms["max"] >= 1000 * (60 * SERVICE - 60 / 100 - SERVICE), "waiting grows to the end"
        assert summary.latency_ms["max"] >= summary.waiting_ms["max"]

    def test_an_overloaded_loop_ends(self, settings, monkeypatch):
        settings.BENCHBENCH_LOAD_THREADS = 1
        monkeypatch.setattr(latencies, "PATIENCE_SECONDS", 0.1)
        loop, requests = Path().run(200)
        summary = summary_of(loop, requests)
        assert len(requests) < len(loop.schedule) == 120
        assert summary.unsent == 120 - len(requests) > 0

    def test_errors_and_stops_end_all_threads(self):
        def fail(number: int) -> None:
            raise OSError("no disk")

        loop = Loop.build("run", 50, 3, seed="1")
        with pytest.raises(OSError, match="no disk"):
            send_all(loop, fail, lambda position, sent: None, check=bool)

        def stop() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Path().run(5, check=stop)
        assert not [thread for thread in threading.enumerate() if thread.name == "load"]


def test_achieved_rates_and_recalls_are_merged():
    """By hand: 10 answers in 2 s and 20 in 3 s, from the first to the last, are 28 intervals in 5 s."""
    loop = Loop.build("run", 10.0, 20, seed="1")
    records = []
    for count, seconds, recall in ((10, 2.0, 0.7), (20, 3.0, 1.0)):
        answered = [Timed(1.0, 4.0, number * seconds / (count - 1)) for number in range(count)]
        record = build_record(loop, answered, sent=count + 1, threads=3)
        records.append(record | {"recall": [(10, recall * count, count)]})
    result = merge_records(records)
    assert result.achieved == pytest.approx(28 / 5)
    assert (result.requests, result.failed, result.unsent) == (30, 2, 2 * len(loop.schedule) - 32)
    assert result.latency_ms["p50"] == pytest.approx(5, rel=0.01)
    assert result.recall == (LoopRecall(10, pytest.approx(0.9), 30),)


def found_by(benchmark: Benchmark) -> dict[float | None, dict[Any, Any]]:
    """Return by rate what each setting found for each query."""
    hits: dict[float | None, dict[Any, Any]] = {}
    for run in benchmark.runs.all():
        setting = run.label.removesuffix(f" · {run.config.get('rate', 0):g}/s")
        for one in run.query_results.all():
            row = (one.document_ids, one.chunk_ids, one.scores, one.error)
            hits.setdefault(run.config.get("rate"), {})[setting, one.query_id, one.repetition] = row
    return hits


@pytest.mark.thorough
def test_rankings_under_load_equal_those_one_at_a_time(transactional_db, tmp_path, monkeypatch, settings):
    """To the bit, with every kind of stage, although threads share indexes, models and connections."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.2)
    settings.BENCHBENCH_LOAD_THREADS = 4
    library = make_library(documents=40, queries=6, filtered=True)
    wait(build_index(create_index(library.collection, name="tiny", encoder=str(save_encoder(tmp_path)))))
    matrix = {
        "indexes": ["tiny"],
        "k_values_for_metrics": [5],
        "search_modes": ["sparse", "hybrid"],
        "use_reranker": [False, True],
        "rerankers": ["late-interaction", str(save_cross_encoder(tmp_path / "cross"))],
        "top_k_values": [10],
        "ann": ["exact", "hnsw(ef_search=20)", "faiss:hnsw(m=8)"],
        "rates": [None, 100],
    }
    benchmark = run_benchmark(library, name="b", matrix=matrix, execution="isolated")
    assert {run.status for run in benchmark.runs.all()} == {"completed"}
    result = found_by(benchmark)
    assert result[100.0] == result[None]
    assert len(result[None]) == benchmark.total_runs / 2 * 6


def test_runs_under_load_say_what_was_measured(library, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.2)
    matrix = {"search_modes": ["dense"], "ann": ["exact", "hnsw(ef_search=60)"], "rates": [None, 100]}
    runs = run_benchmark(library, name="b", matrix=matrix, execution="isolated").runs.order_by("run_order")
    exact, exact_loaded, hnsw, loaded = runs
    assert "open_loop" not in exact.timing
    assert exact_loaded.timing["open_loop"]["recall"] == []
    loop = loaded.timing["open_loop"]
    assert (loop["requests"], loop["failed"], loop["threads"]) == (20, 0, 8), "an open loop is not cut into batches"
    assert [(row["k"], row["mean"], row["requests"]) for row in loop["recall"]] == [(10, 1.0, 20), (100, 1.0, 20)]
    assert loop["latency_ms"]["p50"] >= loop["service_ms"]["p50"] > 0
    assert loaded.timing["percentiles"] == {
        "total_ms": {name: ms for name, ms in loop["latency_ms"].items() if name in PERCENTS}
    }
    assert (loaded.timing["total_ms"], loaded.timing["samples"]) == (loop["latency_ms"]["mean"], 20)
    assert 0 < loaded.timing["search_ms"] < loaded.timing["total_ms"]
    measured = MeasuredRun(Ground(loaded.benchmark, loaded.benchmark.dataset_version), loaded.evaluations.get())
    evidence = build_evidence(Rules(), measured, {})
    assert evidence.latency_ms == {name: ms for name, ms in loop["latency_ms"].items() if name != "max"}
    assert evidence.samples == 20
    assert loaded.times.cost_ms == round(20 * loop["service_ms"]["mean"])
    assert any("isolated at 100/s" in sentence for sentence in find_differences([hnsw, loaded]).warnings)


def test_a_request_asks_neither_postgresql_nor_redis(library, monkeypatch):
    """Unless its search does: a service has no vectors of queries to look up, and nothing to count."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.2)
    requested = list[str]()

    def note(name: str) -> None:
        if threading.current_thread().name == "load":
            requested.append(name)

    connect = BaseDatabaseWrapper.ensure_connection
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", lambda self: [note("sql"), connect(self)][-1])
    monkeypatch.setattr(stages, "count_vectors", lambda *_, **__: note("count"))
    matrix = {"search_modes": ["dense", "sparse"], "rates": [100]}
    benchmark = run_benchmark(library, name="b", matrix=matrix, execution="isolated")
    assert [run.timing["open_loop"]["requests"] for run in benchmark.runs.all()] == [20, 20]
    assert requested == []


def test_a_plan_is_checked_once_per_thread(library, monkeypatch):
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.2)
    checked, execute = list[str](), psycopg.Cursor.execute

    def noted(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        if str(query).startswith("EXPLAIN"):
            checked.append(threading.current_thread().name)
        return execute(cursor, query, *args, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", noted)
    matrix = {"search_modes": ["dense"], "ann": ["hnsw(ef_search=100)"], "rates": [100]}
    loop = run_benchmark(library, name="b", matrix=matrix, execution="isolated").runs.get().timing["open_loop"]
    assert (loop["requests"], loop["recall"][0]["mean"]) == (20, 1)
    assert checked.count("load") == loop["threads"]


@pytest.mark.django_db(transaction=True)
def test_recall_of_compressed_scores_is_that_of_their_chunks(monkeypatch):
    """Scores of signs are not those of vectors, and each query is sent once, so recall equals that without a rate."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.0)
    library = make_library(documents=120, queries=12, filtered=True)
    ann = ["compressed(precision=binary, rescore=0)"]
    matrix = {"search_modes": ["dense"], "k_values_for_metrics": [5], "primary_k": 5, "ann": ann, "rates": [None, 100]}
    alone, loaded = run_benchmark(library, name="b", matrix=matrix, execution="isolated").runs.order_by("run_order")
    expected = [(share["k"], pytest.approx(share["mean"])) for share in alone.provenance["ann"]["recall"]]
    assert [(row["k"], row["mean"]) for row in loaded.timing["open_loop"]["recall"]] == expected
    assert alone.provenance["ann"]["recall"][0]["mean"] < 1


def test_queries_that_were_not_sent_say_so(library, monkeypatch):
    monkeypatch.setattr(Loop, "limit", -1.0)
    matrix = {"search_modes": ["dense"], "rates": [100]}
    run = run_benchmark(library, name="b", matrix=matrix, execution="isolated").runs.get()
    assert run.status == "failed"
    assert "The query was not sent, because searches did not keep up" in run.error_message
    assert any("without sending 500 requests" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("matrix", "options", "sentence"),
    [
        ({"rates": [20]}, {}, "rates: only isolated execution"),
        ({"rates": [0]}, {"execution": "isolated"}, "rates: 0 is not requests per second"),
        ({"rates": [20, 20.0]}, {"execution": "isolated"}, "occurs more than once"),
        (
            {"rates": [20], "query": ["rewrite"], "llms": ["ollama:m"]},
            {"execution": "isolated"},
            "rates: answers of language models are stored",
        ),
    ],
)
def test_wrong_rates_are_refused(library, matrix, options, sentence):
    for act in (partial(create_benchmark, name="b"), preview):
        with pytest.raises(MatrixError, match=sentence) as raised:
            act(library, matrix=matrix, **options)
        assert raised.value.field == "rates"
    assert not Benchmark.objects.exists()


def test_the_rate_of_benchmarks_moved_to_the_matrix(db):
    """The column stays for the code before, and is empty."""
    assert "rate" not in {field.name for field in Benchmark._meta.get_fields()}
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, Benchmark._meta.db_table)
        constraints = connection.introspection.get_constraints(cursor, Benchmark._meta.db_table)
    assert [column.null_ok for column in columns if column.name == "rate"] == [True]
    assert "benchmark_rate" not in constraints


def test_a_kill_loses_one_open_loop(library, monkeypatch):
    """Each loop is a batch: what ended before a worker was killed is neither lost nor sent again."""
    monkeypatch.setattr(latencies, "LEAST_SECONDS", 0.2)
    wait(build_index(create_index(library.collection, name="words", encoder="")))
    matrix = {"search_modes": ["sparse"], "indexes": ["words"], "rates": [None, 50, 100]}
    benchmark = create_benchmark(library, name="b", matrix=matrix, execution="isolated")
    operation = launch(benchmark)
    payloads = [batch.payload for batch in operation.batches.order_by("ordinal")]
    alone, slow, fast = (str(run.pk) for run in benchmark.runs.order_by("run_order"))
    loops = [payload["runs"] for payload in payloads if payload["runs"] != [alone]]
    assert loops == [[slow], [fast]]
    assert payloads[0]["runs"] == [alone]
    sent: list[str] = []
    search = LoadedRun.search

    def note(run: Any, loop: Any, *args: Any, **options: Any) -> Any:
        (only,) = run.plan.runs
        sent.append(only.run_key)
        if sent == [slow, fast]:
            raise KeyboardInterrupt  # the worker is killed in the second loop
        return search(run, loop, *args, **options)

    monkeypatch.setattr(LoadedRun, "search", note)
    with pytest.raises(KeyboardInterrupt):
        wait(operation)
    assert build_event(operation)["runs"][1]["completed_queries"] == benchmark.dataset_version.query_count
    operation.batches.filter(state="running").update(lease_until=timezone.now() - timedelta(hours=1))
    wait(operation)
    assert sent == [slow, fast, fast]
    benchmark.refresh_from_db()
    assert benchmark.status == "completed"
    for run in benchmark.runs.all():
        assert run.query_results.count() == benchmark.dataset_version.query_count
    assert [bool(run.timing.get("open_loop")) for run in benchmark.runs.order_by("run_order")] == [False, True, True]
