"""Times of queries, and their limit, hold for each by itself, also where they are searched together."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from apps.datasets.models import Query
from apps.execution.launching import retry
from apps.execution.running.latencies import Loop, Timed, build_record, merge_records
from apps.execution.running.timing import compute_consistency, compute_percentiles, count_calls
from apps.mappings.models import Mapping
from apps.operations.working import wait
from apps.records.models import Run
from apps.retrieval.encoders.registry import KeywordEncoder
from apps.retrieval.rerankers.late_interaction import LateInteractionReranker
from apps.retrieval.search import approximate
from apps.retrieval.search.open_indexes import OpenIndex
from tests.benchmarks.figures import run_key
from tests.created import list_warnings, run_benchmark
from tests.library import ENCODER
from tests.rankings import change_rankings

STALL = 8.0  # seconds of the one query; over the twelve of a batch it is less than a second each
LIMIT_MS = 5000


class Clock:
    """Stands for the module `time`, and moves only when something is said to take time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.stalls = STALL
        self.passes = False  # only the first time does the query take so long

    def perf_counter(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Clock:
    clock = Clock()
    settings.BENCHBENCH_BATCH_SECONDS = 60
    settings.BENCHBENCH_QUERY_TIMEOUT_MS = LIMIT_MS
    for module in (
        "apps.execution.running.stages",
        "apps.execution.running.pairs",
        "apps.retrieval.encoders.encoding",
        "apps.retrieval.search.approximate",
    ):
        monkeypatch.setattr(f"{module}.time", clock)
    return clock


@pytest.fixture
def slow(library: Mapping) -> Query:
    """A query that has its words, and so its vector, for itself."""
    queries = list(Query.objects.filter(dataset=library.dataset).order_by("pk"))
    words = Counter(frozenset(query.text.split()) for query in queries)
    return next(query for query in queries[3:] if words[frozenset(query.text.split())] == 1)


def stall(monkeypatch: pytest.MonkeyPatch, clock: Clock, slow: Query, stage: str) -> None:
    """Let the slow query take its time at one stage, anyone who is searched together with it."""
    vector = KeywordEncoder(ENCODER).embed_batch([slow.text])[0]

    def is_slow(requested: Any) -> bool:
        if isinstance(requested, str):
            return requested == slow.text
        if isinstance(requested, list):
            return slow.text in requested
        return bool((np.atleast_2d(requested) == vector).all(axis=1).any())

    owner, name = SLOWED[stage]
    original = getattr(owner, name)

    def slowed(*args: Any, **options: Any) -> Any:
        clock.seconds += 0.001 + clock.stalls * is_slow(args[1])
        if clock.passes and is_slow(args[1]):
            clock.stalls = 0
        return original(*args, **options)

    monkeypatch.setattr(owner, name, slowed)


SLOWED: dict[str, tuple[Any, str]] = {
    "encode": (KeywordEncoder, "embed_batch"),
    "dense": (OpenIndex, "find_answers"),
    "lexical": (OpenIndex, "search_words"),
    "fts": (OpenIndex, "search_words"),
    "approximate": (approximate, "score_pairs"),
    "rerank": (LateInteractionReranker, "score"),
}
MATRICES = {
    "encode": {"search_modes": ["dense"]},
    "dense": {"search_modes": ["dense"]},
    "lexical": {"search_modes": ["sparse"]},
    "fts": {"search_modes": ["sparse"], "lexical": ["fts"]},
    "approximate": {"search_modes": ["dense"], "ann": ["hnsw"]},
    "rerank": {"search_modes": ["sparse"], "use_reranker": [True]},
}


def measured(library: Mapping, matrix: dict[str, Any]) -> Run:
    return run_benchmark(library, name="b", matrix=matrix).runs.get()


@pytest.mark.parametrize("stage", MATRICES)
def test_stall_fails_only_its_own_query(library, clock, slow, monkeypatch, stage):
    stall(monkeypatch, clock, slow, stage)
    run = measured(library, MATRICES[stage])
    failed = run.query_results.exclude(error="")
    assert [(result.query_id, "BENCHBENCH_QUERY_TIMEOUT_MS" in result.error) for result in failed] == [(slow.pk, True)]
    assert failed.get().total_ms == pytest.approx(1000 * STALL, abs=10)
    assert all(result.total_ms < 10 for result in run.query_results.filter(error=""))
    assert not any("stall" in warning for warning in run.warnings)


@pytest.mark.parametrize("stage", ["encode", "dense", "lexical"])
def test_stall_that_does_not_recur_is_a_warning(library, clock, slow, monkeypatch, stage):
    clock.passes = True
    stall(monkeypatch, clock, slow, stage)
    run = measured(library, MATRICES[stage])
    assert run.failed_queries == 0
    assert [warning for warning in run.warnings if "BENCHBENCH_QUERY_TIMEOUT_MS" in warning] == [
        "1 stall did not recur: queries that exceeded BENCHBENCH_QUERY_TIMEOUT_MS in a batch took less than half of it "
        "one by one. The times exclude the stall."
    ]


def test_many_that_take_their_time_together_are_no_stall(library, clock, settings, monkeypatch):
    settings.BENCHBENCH_QUERY_TIMEOUT_MS = 5
    original = OpenIndex.search_words

    def steady(index: OpenIndex, texts: Any, *args: Any, **options: Any) -> Any:
        clock.seconds += 0.004 * len(texts)
        return original(index, texts, *args, **options)

    monkeypatch.setattr(OpenIndex, "search_words", steady)
    run = measured(library, MATRICES["lexical"])
    assert (run.failed_queries, list_warnings(run)) == (0, [])


@pytest.mark.parametrize("stage", ["dense", "lexical"])
def test_rankings_are_those_that_are_found_together(library, clock, slow, monkeypatch, stage):
    def remaining(run: Run) -> dict[Any, Any]:
        return {key: hit for key, hit in run_key(run.benchmark).items() if key[1] != slow.pk}

    together = remaining(measured(library, MATRICES[stage]))
    stall(monkeypatch, clock, slow, stage)
    assert remaining(measured(library, MATRICES[stage])) == together


def test_time_limit_applies_to_the_sum_of_query_stages(library, clock, slow, monkeypatch):
    """Neither stage passes the limit, even for all queries together: each query is thought to have had a share."""
    clock.stalls = STALL / 2
    for stage in ("dense", "lexical"):
        stall(monkeypatch, clock, slow, stage)
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse", "hybrid"]})
    dense, sparse, hybrid = benchmark.runs.order_by("run_order")
    assert (dense.failed_queries, sparse.failed_queries) == (0, 0)
    failed = hybrid.query_results.exclude(error="").get()
    assert (failed.query_id, failed.total_ms) == (slow.pk, pytest.approx(1000 * STALL, abs=10))
    assert not hybrid.warnings or not any("stall" in warning for warning in hybrid.warnings)


@pytest.mark.parametrize("stage", ["encode", "rerank"])
def test_a_query_that_was_slow_once_can_be_retried(library, clock, slow, monkeypatch, stage):
    stall(monkeypatch, clock, slow, stage)
    run = measured(library, MATRICES[stage])
    assert run.failed_queries == 1
    clock.stalls = 0
    wait(retry(run.benchmark))
    run.refresh_from_db()
    assert (run.status, run.failed_queries) == ("completed", 0)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, {"p50": 1, "p95": 1}),
        (10, {"p50": 5, "p95": 10}),
        (99, {"p50": 50, "p95": 95}),
        (100, {"p50": 50, "p95": 95, "p99": 99}),
        (370, {"p50": 185, "p95": 352, "p99": 367}),
        (1000, {"p50": 500, "p95": 950, "p99": 990}),
    ],
)
def test_percentiles_are_the_nearest_ranks_everywhere(count, expected):
    """Of single searches to the sample, as NumPy's inverted_cdf; in a loop's histogram to 0.1 %."""
    samples = np.random.default_rng(1).permutation(np.arange(1.0, count + 1))
    assert compute_percentiles(samples) == expected
    assert [np.percentile(samples, int(name[1:]), method="inverted_cdf") for name in expected] == [*expected.values()]
    record = build_record(Loop("run", 10.0, range(count)), [Timed(0, ms, ms) for ms in samples], sent=count, threads=1)
    result = merge_records([record]).latency_ms
    assert {name: ms for name, ms in result.items() if name in expected} == pytest.approx(expected, rel=0.001)
    assert result.keys() - expected == {"mean", "max"}
    assert (result["mean"], result["max"]) == (
        pytest.approx((count + 1) / 2, rel=0.001),
        pytest.approx(count, rel=0.001),
    )


@pytest.fixture
def run(library: Mapping) -> Run:
    """A run that searched each query twice."""
    matrix = {"search_modes": ["sparse"]}
    return run_benchmark(library, name="b", matrix=matrix, execution="isolated", runs_per_query=2).runs.get()


def test_consistency_score_is_the_share_of_consistent_queries(run):
    assert compute_consistency(run) == 1.0
    another, failed, *_ = run.query_results.filter(repetition=2)
    second = run.query_results.filter(repetition=2)
    change_rankings(second.filter(query=another.query_id), document_ids=another.document_ids[::-1])
    change_rankings(second.filter(query=failed.query_id), error="It timed out.")
    assert compute_consistency(run) == pytest.approx(10 / 12)


def test_fallback_in_every_repetition_counts_once(run):
    query = run.query_results.values_list("query_id", flat=True)[0]
    change_rankings(run.query_results.filter(query=query), fallback_used=True)
    assert run.query_results.filter(fallback_used=True).count() == 2
    assert count_calls([run])[run.pk].fallbacks == 1
