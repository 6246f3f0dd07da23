"""The runs of a large benchmark are evaluated in batches before its end."""

import pytest

from apps.datasets.models import DatasetVersion
from apps.execution.launching import cancel, launch, retry
from apps.execution.running import finishing
from apps.mappings.resolving import resolve
from apps.operations import working
from apps.operations.ending import conclude
from apps.operations.models import Operation
from apps.operations.working import perform_batch, wait
from apps.records.measuring import again
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, Evaluation, Run, StageList
from apps.records.models.batches import filter_evaluating
from tests.benchmarks.figures import create_with_thresholds, require_as_stored
from tests.factories import add_version


def evaluate_in_parts(benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch) -> Operation:
    """Do all batches of a benchmark but its end, with each run evaluated in a part of its own."""
    monkeypatch.setattr(again, "RANKINGS", benchmark.dataset_version.query_count)
    operation = launch(benchmark)
    with monkeypatch.context() as patched:
        patched.setattr(finishing, "finish", lambda operation: pytest.fail("The end came before the parts."))
        while batches := list(operation.batches.filter(state="pending").order_by("ordinal")[:2]):
            last = len(batches) == 1 and filter_evaluating(operation).exists()
            patched.setattr(working, "conclude", (lambda operation: False) if last else conclude)
            perform_batch(batches[0].pk, owner="worker")
    assert filter_evaluating(operation).count() == benchmark.runs.count() > 2
    return operation


@pytest.mark.parametrize("changed", [False, True])
def test_runs_evaluated_in_parts_have_equal_figures(library, monkeypatch, changed):
    benchmark = create_with_thresholds(library)
    operation = evaluate_in_parts(benchmark, monkeypatch)
    stored_at = set(Evaluation.objects.values_list("created_at", flat=True))
    assert len(stored_at) == benchmark.runs.count()
    if changed:
        library.resolutions.filter(judgment__grade=1).update(outcome="not_found", document=None)
    assert conclude(operation)
    assert (stored_at == set(Evaluation.objects.values_list("created_at", flat=True))) is not changed
    require_as_stored(benchmark)


def test_cancelled_benchmark_keeps_no_evaluation_of_a_part(library, monkeypatch):
    benchmark = create_with_thresholds(library)
    evaluate_in_parts(benchmark, monkeypatch)
    cancel(benchmark)
    assert not Evaluation.objects.exists()
    wait(launch(benchmark))
    require_as_stored(benchmark)


def test_cancelled_retry_is_evaluated_on_every_version_later(library):
    benchmark = create_with_thresholds(library)
    wait(launch(benchmark))
    add_version(library.dataset)
    resolve(library)
    rescore(benchmark)
    benchmark.runs.update(failed_queries=1)
    StageList.objects.filter(lengths__isnull=False).update(error="No.")
    retry(benchmark)
    cancel(benchmark)
    wait(launch(benchmark))
    assert {*Evaluation.objects.values_list("dataset_version__number", flat=True)} == {1, 2}


def test_parts_have_at_most_so_many_rankings():
    runs = [Run(source_id=number) for number in range(5)]
    pieces = [again.split_runs(runs, DatasetVersion(query_count=count)) for count in (20_000, 10_000, 60_000)]
    assert [[*map(len, piece)] for piece in pieces] == [[2, 2, 1], [5], [1] * 5]
