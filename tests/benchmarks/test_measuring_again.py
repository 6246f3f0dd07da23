"""A finished benchmark that is measured again on the queue: its figures are those of measuring it at once."""

from typing import Any

import numpy as np
import pytest
from django.urls import reverse

from apps.datasets.editing.drafts import end_queries, open_draft
from apps.datasets.models import Query
from apps.execution.launching import cancel, delete_benchmark, launch, retry
from apps.operations.launching import OperationActiveError, QuotaError, cancel_operation
from apps.operations.leasing import make_owner
from apps.operations.models import Batch, Operation
from apps.operations.working import perform_batch, wait
from apps.records.measuring import again, evaluating
from apps.records.measuring.again import RescoringError, find_version, rescore
from apps.records.measuring.measures import add_measures
from apps.records.models import BatchValues, Benchmark, Evaluation
from tests.created import run_benchmark
from tests.drafts import freeze_and_resolve, set_judgment, turn
from tests.kept import made_once
from tests.library import make_library
from tests.site import messages_of, press
from tests.sockets import make_watcher

MODES = {"search_modes": ["dense", "sparse"]}
MATRIX: dict[str, Any] = MODES | {"top_k_values": [20, 30], "score_thresholds": [None, 0.3]}


@pytest.fixture
def finished(transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """Eight runs of two lists, with queries that find nothing; every re-scoring goes to the queue, list by list."""
    benchmark = make_finished()
    settings.BENCHBENCH_MEASURE_AT_ONCE = 0
    monkeypatch.setattr(again, "RANKINGS", 1)
    return benchmark


@made_once
def make_finished() -> Benchmark:
    return run_benchmark(make_library(), name="Which?", matrix=MATRIX)


def figures(benchmark: Benchmark, version: int) -> list[Any]:
    rows = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version__number=version)
    rows = rows.order_by("run__run_order")
    return [
        (row.measures, row.query_ids, np.array(row.values, float).tobytes(), row.means, row.truth_hash, row.query_count)
        for row in rows
    ]


def measured_at_once(benchmark: Benchmark, version: int) -> list[Any]:
    benchmark.refresh_from_db()
    rescore(benchmark, at_once=True)
    return figures(benchmark, version)


def test_queued_and_immediate_rescoring_give_the_same_figures(finished):
    turn(finished)
    freeze_and_resolve(finished.mapping)
    rescored = rescore(finished)
    operation = rescored.operation
    assert rescored.sentence.startswith(
        "Measuring on questions v2 is queued; the page shows the old values until it ends."
    )
    assert operation.batches.count() == finished.runs.count() == 8
    assert operation.total_units == finished.runs.count() * finished.dataset_version.query_count
    first, *_ = operation.batches.order_by("ordinal")
    perform_batch(first.pk, owner=make_owner())
    assert figures(finished, 2) == []
    wait(operation)
    queued = figures(finished, 2)
    assert len(queued) == 8
    assert not BatchValues.objects.exists()
    assert queued == measured_at_once(finished, 2)


def test_queued_and_immediate_measures_give_the_same_figures(finished):
    before = list(finished.measures)
    added = add_measures(finished, ["ERR@5"])
    finished.refresh_from_db()
    assert finished.measures == before
    wait(added.operation)
    finished.refresh_from_db()
    assert finished.measures == added.measures
    queued = figures(finished, 1)
    assert {tuple(measures) for measures, *_ in queued} == {tuple(added.measures)}
    assert queued == measured_at_once(finished, 1)


def test_grades_that_change_meanwhile_are_those_that_count(finished):
    turn(finished)
    freeze_and_resolve(finished.mapping)
    operation = rescore(finished).operation
    perform_batch(operation.batches.order_by("ordinal")[0].pk, owner=make_owner())
    assert BatchValues.objects.update(truth_hash="of grades that were resolved otherwise", values=b"")
    wait(operation)
    assert figures(finished, 2) == measured_at_once(finished, 2)


def test_the_end_measures_nothing_again(finished, monkeypatch):
    """On two versions: what was kept of one is not taken for the other's."""
    turn(finished)
    freeze_and_resolve(finished.mapping)
    rescore(finished, at_once=True)
    operation = add_measures(finished, ["ERR@5"]).operation
    assert operation.parameters["versions"] == [1, 2]
    *remaining, last = operation.batches.order_by("ordinal")
    for batch in remaining:
        perform_batch(batch.pk, owner=make_owner())

    def measured(*_: Any) -> Any:
        raise AssertionError("measured once more")

    monkeypatch.setattr(evaluating, "measure_runs", measured)
    perform_batch(last.pk, owner=make_owner())
    operation.refresh_from_db()
    assert (operation.status, operation.error) == ("completed", "")
    monkeypatch.undo()
    queued = [figures(finished, number) for number in (1, 2)]
    assert queued[0] != queued[1]
    finished.refresh_from_db()
    for number in (1, 2):
        rescore(finished, version=find_version(finished, number), at_once=True)
    assert queued == [figures(finished, number) for number in (1, 2)]


def test_cancelling_the_benchmark_cancels_it_too(finished):
    operation = add_measures(finished, ["ERR@5"]).operation
    cancel(finished)
    operation.refresh_from_db()
    assert (operation.status, finished.status) == ("cancelled", "completed")


def test_cancelled_it_leaves_nothing_and_can_be_begun_again(finished):
    operation = add_measures(finished, ["ERR@5"]).operation
    perform_batch(operation.batches.order_by("ordinal")[0].pk, owner=make_owner())
    assert BatchValues.objects.exists()
    before = figures(finished, 1)
    cancel_operation(operation)
    assert not BatchValues.objects.exists()
    finished.refresh_from_db()
    assert "ERR@5" not in finished.measures
    assert figures(finished, 1) == before
    wait(add_measures(finished, ["ERR@5"]).operation)
    assert len(figures(finished, 1)[0][0]) == len(before[0][0]) + 1  # its judged share is there


def test_meanwhile_nothing_else_is_done_to_the_benchmark(finished):
    add_measures(finished, ["ERR@5"])
    for act in (
        lambda: rescore(finished),
        lambda: rescore(finished, at_once=True),
        lambda: add_measures(finished, ["ERR@3"], at_once=True),
        lambda: delete_benchmark(finished),
    ):
        with pytest.raises(
            OperationActiveError, match="is being measured again: wait until that ends, or cancel the operation"
        ):
            act()
    finished.runs.filter(run_order=1).update(status="failed")
    finished.runs.filter(run_order=2).update(status="pending")
    for start in (launch, retry):
        with pytest.raises(OperationActiveError, match="is being measured again"):
            start(finished)
    finished.refresh_from_db()
    assert finished.status == "completed"


def test_version_without_asked_queries_is_rejected(finished):
    dataset = finished.mapping.dataset
    draft = open_draft(dataset)
    end_queries(draft, Query.objects.filter(dataset=dataset))
    Query.objects.create(dataset=dataset, key="new", text="fig", since=draft.number)
    set_judgment(dataset, "new", {"document_id": "d001"}, 1)
    freeze_and_resolve(finished.mapping)
    with pytest.raises(RescoringError, match="searched no query of questions v2"):
        rescore(finished)
    assert figures(finished, 2) == []
    assert not BatchValues.objects.exists()


def test_measuring_counts_against_the_quota_of_the_requester(finished, settings):
    settings.BENCHMARK_MAX_MEASURING_PER_USER = 0
    with pytest.raises(QuotaError, match="has 0 benchmarks being measured again; a user may have at most 0"):
        add_measures(finished, ["ERR@5"], by=make_watcher("ada"))
    assert not Batch.objects.exclude(state="done").exists()


def test_few_are_measured_at_once(finished, settings):
    settings.BENCHBENCH_MEASURE_AT_ONCE = finished.runs.count() * finished.dataset_version.query_count
    assert add_measures(finished, ["ERR@5"]).operation is None
    settings.BENCHBENCH_MEASURE_AT_ONCE -= 1
    assert add_measures(finished, ["ERR@3"]).operation is not None


def test_page_shows_queued_measuring_and_its_progress(finished, admin_client):
    turn(finished)
    freeze_and_resolve(finished.mapping)
    answer = press(admin_client, finished, "rescore_selected")
    assert "Measuring on questions v2 is queued; the page shows the old values until it ends." in messages_of(answer)
    page = admin_client.get(reverse("admin:benchmarks_benchmark_change", args=[finished.pk]))
    operation = Operation.objects.get(kind="measure")
    assert "Measuring: view or cancel" in page.content.decode()
    assert reverse("admin:operations_operation_change", args=[operation.pk]) in page.content.decode()
    assert "rescore_selected" not in page.content.decode()
    sent = admin_client.post(reverse("admin:benchmark_measures", args=[finished.pk]), {"measures": "ERR@5"})
    assert "is being measured again" in sent.content.decode()
    wait(operation)
    address = reverse("admin:benchmark_measures", args=[finished.pk])
    response = admin_client.post(address, {"measures": "ERR@5"}, follow=True)
    assert "Measuring by ERR@5 is queued" in messages_of(response)
