"""Provisional sums: stored in one row as batches commit, and equal to sums over every batch."""

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from apps.execution.progress import build_event
from apps.execution.provisional import add_shares, load_progress
from apps.operations.models import Batch, Operation, Status
from apps.records.models import MeansSoFar
from apps.records.models.batches import dump_shares
from apps.records.models.progress import RunShare, RunSums
from tests.created import run_benchmark
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

RUNS = [f"run {number}" for number in range(3)]
TOTAL = 200  # queries


@pytest.fixture
def operation(db):
    benchmark = make_benchmark(make_mapping(make_dataset(), make_collection()))
    parameters = {"run_ids": [str(run.pk) for run in benchmark.runs.all()]}
    return Operation.objects.create(
        kind="benchmark", subject_id=benchmark.pk, status=Status.RUNNING, parameters=parameters
    )


def add_batch(operation, value, state=Batch.State.DONE):
    share = RunShare(completed=2, counted=1, sums=[value, 2 * value], valued=[1, 1])
    fields = {"state": state, "lease_until": operation.created_at, "payload": {"query_ids": [1, 2]}}
    result = {"runs": dump_shares(dict.fromkeys(RUNS, share)), "notes": {"long": "x" * 1000}}
    ordinal = operation.batches.count()
    return Batch.objects.create(operation=operation, ordinal=ordinal, result=result, **fields)


def commit(batch):
    """End a batch and add its share to the row of the operation, as a worker does."""
    add_shares(batch, {run: RunShare(**share) for run, share in batch.result["runs"].items()}, TOTAL)
    Batch.objects.filter(pk=batch.pk).update(state=Batch.State.DONE)


def sums_of(operation):
    return load_progress(operation, TOTAL)[1]


@pytest.mark.parametrize("has_row", [False, True])
def test_sums_are_those_of_every_batch(operation, has_row):
    """Also of an operation of the version before, which has no row."""
    if has_row:
        MeansSoFar.objects.create(operation=operation)
    *first, _ = [add_batch(operation, value, Batch.State.RUNNING) for value in (1.0, 2.0, 4.0, 8.0)]
    for batch in first:
        commit(batch)
    assert load_progress(operation, TOTAL) == (TOTAL - 8, dict.fromkeys(RUNS, RunSums(8, 4, [15.0, 30.0], [4, 4])))
    operation.status = Status.CANCELLED
    assert sums_of(operation)["run 1"] == RunSums(6, 3, [7.0, 14.0], [3, 3])


def test_a_later_batch_adds_what_the_row_lacks(operation):
    """A worker that found the row locked, or has the version before, leaves its share out."""
    row = MeansSoFar.objects.create(operation=operation)
    commit(add_batch(operation, 1.0, Batch.State.RUNNING))
    left_out = add_batch(operation, 2.0)
    assert sums_of(operation)["run 1"].sums == [3.0, 6.0]
    row.refresh_from_db()
    assert left_out.pk not in row.batch_ids
    commit(add_batch(operation, 4.0, Batch.State.RUNNING))
    assert sums_of(operation)["run 1"].sums == [7.0, 14.0]
    row.refresh_from_db()
    assert sorted(row.batch_ids) == [batch.pk for batch in operation.batches.all()]


def test_a_refresh_costs_the_same_for_many_batches(operation):
    """It reads neither payloads nor results of done batches: it says the same without them."""
    MeansSoFar.objects.create(operation=operation)
    statements = []
    for number in (7, 40):
        while operation.batches.count() < number:
            commit(add_batch(operation, 1.0, Batch.State.RUNNING))
        with CaptureQueriesContext(
            connection,
        ) as captured:
            event = build_event(operation)
        statements.append(len(captured))
    assert statements[0] == statements[1]
    operation.batches.update(payload={}, result={}, units=F("units"))
    assert build_event(operation) == event
    assert sums_of(operation)["run 1"].completed == 80


@pytest.mark.django_db(transaction=True)
def test_each_commit_of_a_benchmark_stores_the_sums(library, settings):
    settings.BENCHBENCH_BATCH_SECONDS = 0.001
    benchmark = run_benchmark(library, name="b", matrix={"search_modes": ["dense", "sparse"]})
    operation = Operation.objects.get(subject_id=benchmark.pk)
    row = MeansSoFar.objects.get(operation=operation)
    searched = operation.batches.filter(payload__has_key="query_ids")
    assert sorted(row.batch_ids) == [batch.pk for batch in searched]
    assert {total.completed for total in row.read_sums().values()} == {benchmark.dataset_version.query_count}


@given(st.lists(st.lists(st.floats(-9, 9), min_size=1, max_size=3), max_size=5))
def test_measures_added_later_follow_those_of_earlier_batches(rows):
    total = RunSums()
    for row in rows:
        total.add(RunShare(completed=1, counted=1, sums=row, valued=[1] * len(row)))
    shortest = min(map(len, rows), default=0)
    assert total.sums == pytest.approx([sum(row[n] for row in rows) for n in range(shortest)])
