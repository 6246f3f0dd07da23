"""The ground truth of a mapping, and judging a document where it is seen."""

import pytest
from django.contrib.auth.models import User

from apps.datasets.editing.drafts import end_queries, find_draft, freeze, open_draft
from apps.datasets.models import Judgment, Query
from apps.datasets.versions import hash_version
from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from apps.mappings.repairing import JudgingError, find_judgments, judge_document, unjudge_document
from apps.mappings.resolving import resolve
from apps.mappings.truth import TruthError, TruthPolicies, read_truth
from tests.drafts import set_judgment
from tests.factories import add_judgment, add_version, make_collection, make_dataset, make_mapping


@pytest.fixture
def library():
    return make_collection(documents=[{"external_id": name, "uri": f"file:///{name}"} for name in "abc"])


def truth_of(queries, collection, **options):
    """The truth with external ids for documents and "?" + reference for unresolved judgments."""
    mapping = resolve(create_mapping(make_dataset(queries), collection)).mapping
    truth = read_truth(mapping, mapping.dataset_version, **options)
    names = dict(collection.documents.values_list("id", "external_id"))
    names |= {-pk: f"?{next(iter(ref.values()))}" for pk, ref in Judgment.objects.values_list("id", "doc_ref")}
    keys = dict(mapping.dataset_version.queries.values_list("id", "key"))
    grades = {
        keys[query]: {names[key]: grade for key, grade in graded.items()} for query, graded in truth.grades.items()
    }
    return grades, truth.unresolved_count, truth.unresolved_share


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


@pytest.mark.django_db
@pytest.mark.parametrize(("queries", "grades", "unresolved"), CASES.values(), ids=CASES)
def test_the_truth(library, queries, grades, unresolved):
    assert truth_of(queries, library) == (grades, *unresolved)


@pytest.mark.django_db
def test_unresolved_judgments_can_be_dropped_and_are_still_counted(library):
    assert truth_of(PARTLY_LOST, library, policies=TruthPolicies(unresolved="drop")) == (
        {"q1": {"a": 3}, "q2": {}},
        3,
        3 / 6,
    )


@pytest.mark.django_db
@pytest.mark.parametrize("order", [(1, 2, -1), (2, -1, 1), (-1, 1, 2)])
def test_highest_of_several_grades_counts(library, order):
    references = [{"document_id": "a"}, {"uri": "file:///a"}, {"path": "file:///a"}]
    assert truth_of({"q1": list(zip(references, order, strict=True))}, library)[0] == {"q1": {"a": 2}}


@pytest.mark.django_db
def test_an_older_version_keeps_its_own_truth(library):
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1), ({"document_id": "b"}, 1)], "q2": []})
    first = dataset.versions.get()
    query = first.queries.get(key="q1")
    query.judgments.filter(doc_ref={"document_id": "b"}).update(until=2)
    add_judgment(query, {"document_id": "b"}, 3, since=2)
    first.queries.filter(key="q2").update(until=2)
    second = add_version(dataset)
    mapping = resolve(create_mapping(dataset, library)).mapping
    assert [sorted(graded.values()) for graded in read_truth(mapping, first).grades.values()] == [[1, 1], []]
    assert [sorted(graded.values()) for graded in read_truth(mapping, second).grades.values()] == [[1, 3]]


@pytest.mark.django_db
def test_versions_unknown_to_the_mapping_are_refused(library):
    dataset = make_dataset({"q1": [({"document_id": "a"}, 1)]})
    mapping = create_mapping(dataset, library)
    with pytest.raises(TruthError, match="is pending: resolve it first"):
        read_truth(mapping, dataset.versions.get())
    mapping = resolve(mapping).mapping
    with pytest.raises(TruthError, match="is newer: resolve it again"):
        read_truth(mapping, add_version(dataset))
    with pytest.raises(TruthError, match="belongs to another dataset"):
        read_truth(mapping, make_dataset(name="others").versions.get())


@pytest.mark.django_db
def test_it_takes_two_queries(library, django_assert_num_queries):
    queries = {f"q{n}": [({"document_id": "a"}, 1), ({"document_id": "x"}, 1)] for n in range(20)}
    mapping = resolve(create_mapping(make_dataset(queries), library)).mapping
    with django_assert_num_queries(2):
        read_truth(mapping, mapping.dataset_version)


@pytest.mark.django_db
def test_truth_can_be_limited_to_some_queries(library):
    mapping = resolve(create_mapping(make_dataset({"q1": [({"document_id": "a"}, 2)], "q2": []}), library)).mapping
    truth = read_truth(mapping, mapping.dataset_version)
    for query_id, graded in truth.grades.items():
        assert read_truth(mapping, mapping.dataset_version, query_ids=[query_id]).grades == {query_id: graded}


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def judged_mapping(db: None) -> Mapping:
    """One document is judged under two references, one under its uri, one not at all."""
    collection = make_collection("library", [{"uri": "lib:1"}, {"uri": "lib:2"}, {"uri": "lib:3"}])
    judgments = [({"document_id": "d1"}, 3), ({"uri": "lib:1"}, 1), ({"uri": "lib:2"}, 2), ({"uri": "gone"}, 1)]
    return make_mapping(make_dataset({"q": judgments}), collection)


def grades(judged_mapping: Mapping, number: int) -> dict[str, list[int]]:
    version = judged_mapping.dataset.versions.get(number=number)
    judgments = find_judgments(judged_mapping, version, Query.objects.get())
    documents = judged_mapping.collection.documents.in_bulk(judgments)
    return {documents[key].external_id: [one.grade for one in judged] for key, judged in judgments.items()}


def judge(judged_mapping: Mapping, name: str, grade: int, by: User, note: str = "") -> Judgment:
    document = judged_mapping.collection.documents.get(external_id=name)
    return judge_document(judged_mapping, Query.objects.get(), document, grade, by=by, note=note)


def test_a_document_is_found_under_every_reference(judged_mapping):
    assert grades(judged_mapping, 1) == {"d1": [3, 1], "d2": [2]}


def test_new_grade_replaces_all_earlier_grades(judged_mapping, ada):
    """Of several judgments of a document the highest counts: an other that stayed would outvote a lower grade."""
    judged = judge(judged_mapping, "d1", 0, ada, "About apples.")
    assert (judged.source, judged.judge, judged.judged_by, judged.note) == ("human", "ada", ada, "About apples.")
    judge(judged_mapping, "d2", 1, ada)
    judge(judged_mapping, "d3", 2, ada)
    judge(judged_mapping, "d3", 3, ada)
    assert grades(judged_mapping, 2) == {"d1": [0], "d2": [1], "d3": [3]}
    assert grades(judged_mapping, 1) == {"d1": [3, 1], "d2": [2]}, "the frozen version stays"
    references = [one.doc_ref for one in find_draft(judged_mapping.dataset).judgments.order_by("ref_hash")]
    assert {"uri": "lib:2"} in references, "the reference that the dataset has is kept"
    assert {"document_id": "d3"} in references


def test_taking_it_away_takes_every_judgment_of_the_document(judged_mapping, ada):
    query, documents = Query.objects.get(), judged_mapping.collection.documents
    unjudge_document(judged_mapping, query, documents.get(external_id="d1"))
    assert grades(judged_mapping, 2) == {"d2": [2]}
    with pytest.raises(JudgingError, match="has no judgment for 'q'"):
        unjudge_document(judged_mapping, query, documents.get(external_id="d3"))


def test_sections_stay_with_the_judgment(judged_mapping, ada):
    set_judgment(judged_mapping.dataset, "q", {"uri": "lib:2"}, 2, section_refs=["s1"])
    version = freeze(judged_mapping.dataset)
    assert judge(judged_mapping, "d2", 3, ada).section_refs == ["s1"]
    assert hash_version(version) == version.content_hash


def test_judging_removed_documents_or_queries_is_refused(judged_mapping, ada):
    document = judged_mapping.collection.documents.get(external_id="d3")
    document.removed_at = document.created_at
    document.save()
    with pytest.raises(JudgingError, match="was removed from the collection"):
        judge(judged_mapping, "d3", 1, ada)
    end_queries(open_draft(judged_mapping.dataset), Query.objects.all())
    with pytest.raises(JudgingError, match="'q' was reworded or removed since"):
        judge(judged_mapping, "d2", 1, ada)


def test_a_grade_that_is_stated_already_opens_no_draft(judged_mapping, ada):
    judged = judge(judged_mapping, "d3", 1, ada)
    freeze(judged_mapping.dataset)
    assert judge(judged_mapping, "d3", 1, ada) == judged
    assert find_draft(judged_mapping.dataset) is None
