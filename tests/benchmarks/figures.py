"""Every figure that a benchmark found, to be compared."""

from typing import Any

from apps.mappings.models import Mapping
from apps.records.measuring.evaluating import evaluate_runs
from apps.records.models import BatchValues, Benchmark, Evaluation
from tests.created import create_benchmark


def run_key(benchmark: Any) -> dict[str, Any]:
    """Return everything a benchmark found, by configuration and query: what two equal benchmarks must agree in."""
    results = [(run.config_hash, result) for run in benchmark.runs.all() for result in run.query_results.all()]
    return {
        (key, one.query_id, one.repetition): (one.document_ids, one.chunk_ids, one.scores, one.error)
        for key, one in results
    }


def values_of(benchmark: Benchmark) -> dict[str, Any]:
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark).select_related("run")
    return {one.run.config_hash: (one.means, one.query_ids, one.values, one.failed_queries) for one in evaluations}


THRESHOLDS = {"search_modes": ["dense", "hybrid"], "score_thresholds": [None, 0.4], "top_k_values": [20]}


def create_with_thresholds(library: Mapping, **options: Any) -> Benchmark:
    return create_benchmark(
        library, name="b", matrix=THRESHOLDS, measures=["FirstRelevant@1", "ERR@10"], empty_queries="skip", **options
    )


def figures(benchmark: Benchmark) -> dict[str, Any]:
    return {
        one.run_id: (one.means, one.measures, one.query_ids, one.values, one.query_count, one.failed_queries)
        for one in Evaluation.objects.filter(run__benchmark=benchmark)
    }


def require_as_stored(benchmark: Benchmark) -> None:
    """Compare every figure of an ended benchmark with those of the rankings in the database."""
    benchmark.refresh_from_db()
    stored = figures(benchmark)
    assert not BatchValues.objects.exists()
    evaluate_runs(benchmark, benchmark.runs.all(), version=benchmark.dataset_version)
    assert stored == figures(benchmark)
    assert len(stored) == benchmark.runs.count()


def by_query(evaluation: Evaluation) -> dict[int, float | None]:
    return dict(zip(evaluation.query_ids, evaluation.values[evaluation.measures.index("nDCG@10")], strict=True))
