import numpy as np
import pytest

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Run
from apps.benchmarks.running.timing import calls_of, consistency_score, percentiles
from apps.mappings.models import Mapping
from apps.operations.working import wait
from tests.created import create_benchmark
from tests.rankings import change_rankings


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, {"p50": 1, "p95": 1}),
        (10, {"p50": 6, "p95": 10}),
        (99, {"p50": 50, "p95": 95}),
        (100, {"p50": 51, "p95": 96, "p99": 100}),
        (1000, {"p50": 501, "p95": 951, "p99": 991}),
    ],
)
def test_percentiles_are_samples_in_rising_order(count: int, expected: dict[str, float]) -> None:
    assert percentiles(np.random.default_rng(1).permutation(np.arange(1.0, count + 1))) == expected


@pytest.fixture
def run(library: Mapping) -> Run:
    """A run that searched each query twice."""
    matrix = {"search_modes": ["sparse"]}
    benchmark = create_benchmark(library, name="b", matrix=matrix, execution="isolated", runs_per_query=2)
    wait(launch(benchmark))
    return benchmark.runs.get()


def test_the_consistency_score_is_the_share_of_queries_answered_alike(run: Run) -> None:
    assert consistency_score(run) == 1.0
    other, failed, *_ = run.query_results.filter(repetition=2)
    second = run.query_results.filter(repetition=2)
    change_rankings(second.filter(query=other.query_id), document_ids=other.document_ids[::-1])
    change_rankings(second.filter(query=failed.query_id), error="It timed out.")
    assert consistency_score(run) == pytest.approx(10 / 12)


def test_a_query_that_fell_back_in_each_repetition_fell_back_once(run: Run) -> None:
    query = run.query_results.values_list("query_id", flat=True)[0]
    change_rankings(run.query_results.filter(query=query), fallback_used=True)
    assert run.query_results.filter(fallback_used=True).count() == 2
    assert calls_of([run])[run.pk].fallbacks == 1
