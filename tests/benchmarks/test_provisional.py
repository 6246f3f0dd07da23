"""Provisional sums: read once by a process, however many viewers look, and equal to sums over every batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.benchmarks import provisional
from apps.benchmarks.provisional import RunSums, load_run_sums
from apps.operations.models import Batch, Operation, Status
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

RUNS = [f"run {number}" for number in range(3)]


@pytest.fixture
def operation(db):
    benchmark = make_benchmark(make_mapping(make_dataset(), make_collection()))
    return Operation.objects.create(kind="benchmark", subject_id=benchmark.pk, status=Status.RUNNING)


def add_batch(operation, value, state=Batch.State.DONE):
    entry = {"completed": 2, "counted": 1, "sums": [value, 2 * value], "valued": [1, 1]}
    fields = {"state": state, "lease_until": operation.created_at, "payload": {"query_ids": [1, 2]}}
    result = {"runs": dict.fromkeys(RUNS, entry), "notes": {"long": "x" * 1000}}
    ordinal = operation.batches.count()
    return Batch.objects.create(operation=operation, ordinal=ordinal, result=result, **fields)


def test_sums_are_those_of_every_batch(operation):
    for value in (1.0, 2.0, 4.0):
        add_batch(operation, value)
    running = add_batch(operation, 8.0, Batch.State.RUNNING)
    assert load_run_sums(operation)["run 1"] == RunSums(8, 4, [15.0, 30.0], [4, 4])
    operation.status = Status.CANCELLED
    assert load_run_sums(operation)["run 1"] == RunSums(6, 3, [7.0, 14.0], [3, 3])
    running.delete()
    operation.batches.first().delete()  # never happens, and is noticed
    assert load_run_sums(operation)["run 1"].sums == [6.0, 12.0]


def test_results_are_loaded_once_for_all_viewers(operation, monkeypatch):
    loaded = []
    add_results = provisional._add_results

    def count(sums, batches):
        loaded.append(batches.count())
        add_results(sums, batches)

    monkeypatch.setattr(provisional, "_add_results", count)
    for value in range(50):
        add_batch(operation, float(value))
    first = load_run_sums(operation)
    assert max(loaded) <= provisional.AT_ONCE
    loaded.clear()
    for _ in range(20):
        assert load_run_sums(operation) == first
    assert sum(loaded) == 0
    add_batch(operation, 1.0)
    load_run_sums(operation)
    assert sum(loaded) == 1


def test_a_process_remembers_few_operations(operation):
    for _ in range(3 * provisional.MAX_OPERATIONS):
        load_run_sums(Operation(status=Status.COMPLETED))
    assert len(provisional._remembered) == provisional.MAX_OPERATIONS


@given(st.lists(st.lists(st.floats(-9, 9), min_size=1, max_size=3), max_size=5))
def test_measures_added_later_follow_those_of_earlier_batches(rows):
    total = RunSums()
    for row in rows:
        total.add({"completed": 1, "counted": 1, "sums": row, "valued": [1] * len(row)})
    shortest = min(map(len, rows), default=0)
    assert total.sums == pytest.approx([sum(row[n] for row in rows) for n in range(shortest)])
