"""What batches measure from memory is what measuring the stored rankings gives, whatever happens in between."""

from typing import Any

import numpy as np
import pytest

from apps.benchmarks.launching import cancel, launch, retry
from apps.benchmarks.measuring import evaluating
from apps.benchmarks.measuring.evaluating import evaluate_runs
from apps.benchmarks.measuring.measures import add_measures
from apps.benchmarks.models import BatchValues, Benchmark, Evaluation, QueryResult
from apps.benchmarks.progress import benchmark_event
from apps.benchmarks.running import execution
from apps.benchmarks.running.stages import Stages
from apps.mappings.models import Mapping
from apps.operations.models import Operation
from apps.operations.working import perform_batch, wait
from benchbench.ir.planning.stages import FuseStage
from tests.created import create_benchmark
from tests.rankings import delete_rankings

MATRIX = {"search_modes": ["dense", "hybrid"], "score_thresholds": [None, 0.4], "top_k_values": [20]}


def make(library: Mapping, **options: Any) -> Benchmark:
    return create_benchmark(
        library, name="b", matrix=MATRIX, measures=["FirstRelevant@1", "ERR@10"], empty_queries="skip", **options
    )


def begin(benchmark: Benchmark) -> Operation:
    """Start a benchmark and do the first of its batches."""
    operation = launch(benchmark)
    assert operation.batches.count() > 1
    assert perform_batch(operation.batches.order_by("ordinal").first().pk, owner="first")
    return operation


def figures(benchmark: Benchmark) -> dict[str, Any]:
    found = Evaluation.objects.filter(run__benchmark=benchmark)
    return {
        one.run_id: (one.means, one.measures, one.query_ids, one.values, one.query_count, one.failed_queries)
        for one in found
    }


def require_as_stored(benchmark: Benchmark) -> None:
    """Compare every figure of an ended benchmark with those of the rankings in the database."""
    benchmark.refresh_from_db()
    kept = figures(benchmark)
    assert not BatchValues.objects.exists()
    evaluate_runs(benchmark, benchmark.runs.all(), version=benchmark.dataset_version)
    assert kept == figures(benchmark)
    assert len(kept) == benchmark.runs.count()


@pytest.mark.parametrize("seconds", [0.001, 60], ids=["batches", "one batch"])
@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_nothing_is_measured_twice(
    library: Mapping, monkeypatch: pytest.MonkeyPatch, settings: Any, execution: str, seconds: float
) -> None:
    settings.BENCHBENCH_BATCH_SECONDS = seconds
    benchmark = make(library, execution=execution, runs_per_query=2)
    with monkeypatch.context() as patched:
        patched.delattr(evaluating, "documents_by_query")
        wait(launch(benchmark))
    require_as_stored(benchmark)


def test_a_failed_query_has_no_value_and_a_retry_brings_it(library: Mapping, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = make(library)
    bad = library.dataset.queries.order_by("key")[4]
    values = Stages._values

    def failing(self: Stages, stage: Any, number: int) -> Any:
        if isinstance(stage, FuseStage) and self.queries[number] == bad:
            raise ValueError("No.")
        return values(self, stage, number)

    with monkeypatch.context() as patched:
        patched.setattr(Stages, "_values", failing)
        wait(launch(benchmark))
    assert set(benchmark.runs.values_list("config__search_mode", "failed_queries")) == {("dense", 0), ("hybrid", 1)}
    require_as_stored(benchmark)
    wait(retry(benchmark))
    require_as_stored(benchmark)
    assert set(benchmark.runs.values_list("failed_queries", flat=True)) == {0}


def test_an_attempt_that_falls_over_amid_its_commit_leaves_no_values(
    library: Mapping, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = make(library)
    keep_values, errors = execution.keep_values, [OSError(5, "The disk is away")]

    def fall_over_once(*arguments: Any, **options: Any) -> None:
        keep_values(*arguments, **options)
        if errors:
            raise errors.pop()

    monkeypatch.setattr(execution, "keep_values", fall_over_once)
    operation = wait(launch(benchmark))
    assert operation.batches.get(ordinal=0).attempts == 2
    require_as_stored(benchmark)


def test_judgments_that_change_in_between_are_those_that_count(library: Mapping) -> None:
    benchmark = make(library)
    operation = begin(benchmark)
    before = set(BatchValues.objects.values_list("truth_hash", flat=True))
    library.resolutions.filter(judgment__grade=1).update(outcome="not_found", document=None)
    wait(operation)
    assert before
    require_as_stored(benchmark)


@pytest.mark.parametrize("change", ["measures", "nothing kept"])
def test_a_resumed_benchmark_takes_no_values_that_are_not_its_own(library: Mapping, change: str) -> None:
    """`nothing kept`: the rankings are of a time before their values were kept."""
    benchmark = make(library)
    begin(benchmark)
    cancel(benchmark)
    if change == "measures":
        add_measures(benchmark, ["Hits@3"])
        benchmark.refresh_from_db()
    else:
        BatchValues.objects.all().delete()
    wait(launch(benchmark))
    require_as_stored(benchmark)
    assert len(Evaluation.objects.filter(run__benchmark=benchmark).first().measures) == len(benchmark.measures)


def test_rankings_that_a_later_batch_replaced_are_measured_as_they_are(library: Mapping) -> None:
    benchmark = make(library)
    begin(benchmark)
    cancel(benchmark)
    run = benchmark.runs.first()
    delete_rankings(QueryResult.objects.filter(run=run))  # so that the others are asked these queries again
    for kept in BatchValues.objects.all():
        BatchValues.objects.filter(pk=kept.pk).update(values=np.full(len(kept.values) // 8, 9.0).tobytes())
    wait(launch(benchmark))
    require_as_stored(benchmark)


def test_an_operation_tells_what_it_measured_when_measures_were_added_since(library: Mapping) -> None:
    benchmark = make(library)
    operation = launch(benchmark)
    wait(operation)
    before = benchmark_event(operation)["runs"]
    add_measures(benchmark, ["Hits@3"])
    assert benchmark_event(operation)["runs"] == before
    assert all(one["metrics_flat"]["ndcg@10"] for one in before)


def test_provisional_figures_are_the_values_that_are_kept(library: Mapping) -> None:
    benchmark = make(library)
    operation = begin(benchmark)
    told = {one["run_id"]: one for one in benchmark_event(operation)["runs"]}
    for kept in BatchValues.objects.all():
        values = np.frombuffer(kept.values).reshape(len(kept.measures), -1)
        row = values[kept.measures.index("nDCG@10")]
        one = told[str(kept.run_id)]
        assert one["completed_queries"] == len(kept.query_ids) > 0
        assert one["metrics_flat"]["ndcg@10"] == pytest.approx(row.mean())
    cancel(benchmark)
