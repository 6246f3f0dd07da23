"""Model that fails or returns invalid vectors: a message; nothing else changes."""

from dataclasses import replace

import pytest

from apps.datasets.models import Query
from apps.operations.models import Operation
from apps.records.models import Benchmark
from apps.retrieval.indexing import build_index
from apps.retrieval.models import CachedVector, Index
from tests.faults.kit import Scenario, hold, undisturbed
from tests.faults.work import KINDS, library

STATED_SECONDS = 5
ALWAYS = 1000
FLAWS = {
    "raises": "RuntimeError: CUDA error: device-side assert triggered",
    "not a number": "check the text, the model's files",
    "zeros": "check the text, the model's files",
    "another dimension": "made vectors of the shape",
    "too few vectors": "made vectors of the shape",
}
HIT = {"the first query": 0, "a query in mid-batch": 4}
PLACES = [("benchmark", "the first query"), ("benchmark", "a query in mid-batch"), ("isolated", "a query in mid-batch")]
SEARCHING = [
    Scenario(kind, "model: encoded", flaw, calls=ALWAYS, about=about, alone=True)
    for flaw in FLAWS
    for kind, about in PLACES
]
INDEXING = [Scenario("index", "model: encoded", flaw, calls=ALWAYS, alone=True) for flaw in FLAWS]


@pytest.mark.parametrize("scenario", SEARCHING, ids=lambda scenario: f"{scenario}, {scenario.about}")
def test_a_query_without_a_vector_fails_alone(crew, scenario):
    kind = KINDS[scenario.kind]
    expected = undisturbed(kind)["rankings"]
    query = Query.objects.filter(dataset=library().dataset).order_by("pk")[HIT[scenario.about]]
    CachedVector.objects.all().delete()  # or no model would be asked
    operation = kind.start()
    crew.start_broken(replace(scenario, about=repr(query.text)))
    crew.slowest = crew.sees_the_end_of(operation)
    assert Operation.objects.get(pk=operation.pk).status == "completed"
    result = kind.figures(operation)["rankings"]
    hit = {key for key in expected if key[1] == query.pk}
    assert {key: result[key] for key in expected.keys() - hit} == {key: expected[key] for key in expected.keys() - hit}
    for key in hit:
        assert FLAWS[scenario.action] in result[key][3]
    assert set(Benchmark.objects.get(pk=operation.subject_id).runs.values_list("failed_queries", flat=True)) == {1}


@pytest.mark.parametrize("scenario", INDEXING, ids=str)
def test_invalid_vectors_fail_an_index_until_the_model_works(crew, scenario):
    kind = KINDS["index"]
    expected = undisturbed(kind)
    library()
    CachedVector.objects.all().delete()  # or no model would be asked
    operation = kind.start()
    crew.start_broken(scenario)
    crew.slowest = crew.sees_the_end_of(operation)
    operation.refresh_from_db()
    index = Index.objects.get(pk=operation.subject_id)
    assert (operation.status, index.status) == ("failed", "failed")
    assert FLAWS[scenario.action] in operation.error
    assert not CachedVector.objects.exists()

    crew.dismiss()
    crew.start()
    again = build_index(index)
    crew.sees_the_end_of(again)
    hold(kind, again, expected)
