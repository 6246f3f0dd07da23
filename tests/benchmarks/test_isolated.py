"""Shared and isolated execution find the same."""

from pathlib import Path
from typing import Any

from apps.benchmarks.launching import launch
from apps.benchmarks.models import Benchmark, Evaluation
from apps.operations.working import wait
from tests.benchmarks.conftest import make_library, make_wide, run_key

RUNS, QUERIES = 18, 2


def values_of(benchmark: Benchmark) -> dict[str, Any]:
    """Return every mean and every query's values, by configuration."""
    evaluations = Evaluation.objects.filter(run__benchmark=benchmark).select_related("run")
    return {one.run.config_hash: (one.means, one.query_ids, one.values, one.failed_queries) for one in evaluations}


def test_it_finds_what_shared_execution_finds_on_every_axis(transactional_db: None, tmp_path: Path) -> None:
    library = make_library(documents=40, queries=QUERIES, filtered=True)
    shared, isolated = (
        make_wide(library, tmp_path, runs=RUNS, execution=execution) for execution in ("shared", "isolated")
    )
    for benchmark in (shared, isolated):
        wait(launch(benchmark))
        assert {run.status for run in benchmark.runs.all()} == {"completed"}
        assert benchmark.runs.filter(failed_queries=0).count() == RUNS
    assert len(run_key(shared)) == RUNS * QUERIES
    assert run_key(isolated) == run_key(shared)
    assert values_of(isolated) == values_of(shared)
    assert len(values_of(shared)) == RUNS
