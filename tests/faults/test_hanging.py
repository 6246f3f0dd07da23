"""Workers that hang in native code or end: they are replaced; their work continues without the hanging query."""

import pytest

from apps.datasets.models import Query
from apps.execution.launching import cancel
from apps.operations.models import Operation
from apps.records.models import Benchmark
from tests.faults.kit import hold, scenarios, survive, undisturbed
from tests.faults.work import KINDS, library

STATED_SECONDS = 20
SOON = {"BENCHBENCH_BATCH_TIMEOUT_SECONDS": 6}
NEVER = {"BENCHBENCH_LEASE_SECONDS": 3600}
REPLACED = [
    *scenarios("hang", "benchmark: searched\nindex: words", settings=SOON, alone=True),
    *scenarios("seize", "benchmark: searched", settings=SOON, alone=True),
    *scenarios("die", "benchmark: commit stored\nindex: encoded", settings=NEVER, alone=True),
]


@pytest.mark.parametrize("scenario", REPLACED, ids=str)
def test_a_worker_that_hangs_or_dies_is_replaced(crew, scenario):
    assert sorted(survive(crew, scenario).batches.values_list("attempts", flat=True))[-2:] == [1, 2]


@pytest.mark.parametrize("point", ["benchmark: encoding", "benchmark: reranking"])
def test_hanging_model_fails_only_its_query(crew, point):
    kind = KINDS["benchmark"]
    expected = undisturbed(kind)
    query = Query.objects.filter(dataset=library().dataset).order_by("pk")[4]
    operation = kind.start()
    crew.start(point, "hang", calls=9, about=repr(query.text), BENCHBENCH_CALL_TIMEOUT_SECONDS=5)
    crew.slowest = crew.sees_the_end_of(operation)
    operation.refresh_from_db()
    assert operation.status == "completed", operation.error
    rankings = kind.figures(operation)["rankings"]
    failed = {key: one[-1] for key, one in rankings.items() if one[-1]}
    assert {query_id for _, query_id, _ in failed} == {query.pk}
    model = "encoder keyword:" if point == "benchmark: encoding" else "reranker late-interaction"
    assert all(f"The {model}" in error and "did not answer within 5 s" in error for error in failed.values())
    assert rankings | failed == expected["rankings"] | failed


def test_hanging_store_fails_only_its_query(crew):
    kind = KINDS["store"]
    expected = undisturbed(kind)["rankings"]
    operation = kind.start()
    crew.start("store: searching", "hang", BENCHBENCH_CALL_TIMEOUT_SECONDS=5)
    crew.slowest = crew.sees_the_end_of(operation)
    rankings = kind.figures(operation)["rankings"]
    failed = {key: one for key, one in rankings.items() if one[-1]}
    assert len({query_id for _, query_id, _ in failed}) == 1
    assert {error for *_, error in failed.values()} == {
        "The search by sqlite_vec:exact did not answer within 5 s and was interrupted."
    }
    assert rankings | failed == expected | failed


def test_a_cancel_frees_a_worker_that_hangs(crew):
    operation = KINDS["benchmark"].start()
    crew.start("benchmark: searched", "hang").wait_for_fault()
    cancel(Benchmark.objects.get(pk=operation.subject_id))
    crew.slowest = crew.sees_the_end_of(after := KINDS["resolve"].start())
    hold(KINDS["resolve"], after, undisturbed(KINDS["resolve"]))
    assert Operation.objects.get(pk=operation.pk).status == "cancelled"
