"""The ground truth of a mapping, by hand-made cases."""

import pytest

from apps.datasets.models import Judgment
from apps.mappings.creating import create_mapping
from apps.mappings.resolving import resolve
from apps.mappings.truth import TruthError, truth
from tests.factories import add_judgment, add_version, make_collection, make_dataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def library():
    return make_collection(documents=[{"external_id": name, "uri": f"file:///{name}"} for name in "abc"])


def truth_of(queries, collection, **options):
    """The truth with external ids for documents and "?" + reference for unresolved judgments."""
    mapping = resolve(create_mapping(make_dataset(queries), collection)).mapping
    found = truth(mapping, mapping.dataset_version, **options)
    names = dict(collection.documents.values_list("id", "external_id"))
    names |= {-pk: f"?{next(iter(ref.values()))}" for pk, ref in Judgment.objects.values_list("id", "doc_ref")}
    keys = dict(mapping.dataset_version.queries.values_list("id", "key"))
    grades = {
        keys[query]: {names[key]: grade for key, grade in graded.items()} for query, graded in found.grades.items()
    }
    return grades, found.unresolved_count, found.unresolved_share


PARTLY_LOST = {
    "q1": [({"document_id": "a"}, 3), ({"document_id": "x"}, 1)],
    "q2": [({"uri": "y"}, 0), ({"uri": "z"}, 2)],
}
CASES = {
    "every query with its grades": (
        {"q1": [({"document_id": "a"}, 2), ({"document_id": "b"}, 0)], "q2": [({"document_id": "c"}, -1)], "q3": []},
        {"q1": {"a": 2, "b": 0}, "q2": {"c": -1}, "q3": {}},
        (0, 0.0),
    ),
    "unresolved judgments stay as documents that cannot be found": (
        *(PARTLY_LOST, {"q1": {"a": 3, "?x": 1}, "q2": {"?y": 0, "?z": 2}}, (3, 3 / 6)),
    ),
    "negative grades hold no gain": (
        {"q1": [({"document_id": "a"}, 1), ({"document_id": "b"}, -2), ({"document_id": "x"}, -1)]},
        {"q1": {"a": 1, "b": -2, "?x": -1}},
        (1, 0.0),
    ),
    "equal judgments of one document are one": (
        {"q1": [({"document_id": "a"}, 1), ({"uri": "file:///a"}, 1), ({"document_id": "x"}, 1)]},
        {"q1": {"a": 1, "?x": 1}},
        (1, 1 / 2),
    ),
}


@pytest.mark.parametrize(("queries", "grades", "unresolved"), CASES.values(), ids=CASES)
def test_the_truth(library, queries, grades, unresolved):
    assert truth_of(queries, library) == (grades, *unresolved)


def test_unresolved_judgments_can_be_dropped_and_are_still_counted(library):
    assert truth_of(PARTLY_LOST, library, unresolved="drop") == ({"q1": {"a": 3}, "q2": {}}, 3, 3 / 6)


@pytest.mark.parametrize("order", [(1, 2, -1), (2, -1, 1), (-1, 1, 2)])
def test_of_several_judgments_of_one_document_the_highest_grade_counts(library, order):
    references = [{"document_id": "a"}, {"uri": "file:///a"}, {"path": "file:///a"}]
    assert truth_of({"q1": list(zip(references, order, strict=True))}, library)[0] == {"q1": {"a": 2}}


def test_an_older_version_keeps_its_own_truth(library):
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1), ({"document_id": "b"}, 1)], "q2": []})
    first = dataset.versions.get()
    query = first.queries.get(key="q1")
    query.judgments.filter(doc_ref={"document_id": "b"}).update(until=2)
    add_judgment(query, {"document_id": "b"}, 3, since=2)
    first.queries.filter(key="q2").update(until=2)
    second = add_version(dataset)
    mapping = resolve(create_mapping(dataset, library)).mapping
    assert [sorted(graded.values()) for graded in truth(mapping, first).grades.values()] == [[1, 1], []]
    assert [sorted(graded.values()) for graded in truth(mapping, second).grades.values()] == [[1, 3]]


def test_it_refuses_what_the_mapping_does_not_know(library):
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1)]})
    mapping = create_mapping(dataset, library)
    with pytest.raises(TruthError, match="is pending: resolve it first"):
        truth(mapping, dataset.versions.get())
    mapping = resolve(mapping).mapping
    with pytest.raises(TruthError, match="is newer: resolve it again"):
        truth(mapping, add_version(dataset))
    with pytest.raises(TruthError, match="is of another dataset"):
        truth(mapping, make_dataset(name="others").versions.get())


def test_it_takes_two_queries(library, django_assert_num_queries):
    queries = {f"q{n}": [({"document_id": "a"}, 1), ({"document_id": "x"}, 1)] for n in range(20)}
    mapping = resolve(create_mapping(make_dataset(queries), library)).mapping
    with django_assert_num_queries(2):
        truth(mapping, mapping.dataset_version)


def test_of_some_queries_it_tells_only_of_them(library):
    mapping = resolve(create_mapping(make_dataset({"q1": [({"document_id": "a"}, 2)], "q2": []}), library)).mapping
    whole = truth(mapping, mapping.dataset_version)
    for query_id, graded in whole.grades.items():
        assert truth(mapping, mapping.dataset_version, query_ids=[query_id]).grades == {query_id: graded}
