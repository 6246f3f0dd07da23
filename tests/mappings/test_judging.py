"""Judging a document where it is seen, by whatever reference the dataset has for it."""

import pytest
from django.contrib.auth.models import User

from apps.datasets.editing.drafts import draft_of, end_queries, freeze, open_draft
from apps.datasets.models import Judgment, Query
from apps.datasets.versions import stored_hash
from apps.mappings.models import Mapping
from apps.mappings.repairing import JudgingError, judge_document, stated_for, unjudge_document
from tests.drafts import set_judgment
from tests.factories import make_collection, make_dataset, make_mapping


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def mapping(db: None) -> Mapping:
    """One document is judged under two references, one under its uri, one not at all."""
    collection = make_collection("library", [{"uri": "lib:1"}, {"uri": "lib:2"}, {"uri": "lib:3"}])
    judgments = [({"document_id": "d1"}, 3), ({"uri": "lib:1"}, 1), ({"uri": "lib:2"}, 2), ({"uri": "gone"}, 1)]
    return make_mapping(make_dataset({"q": judgments}), collection)


def grades(mapping: Mapping, number: int) -> dict[str, list[int]]:
    version = mapping.dataset.versions.get(number=number)
    stated = stated_for(mapping, version, Query.objects.get())
    documents = mapping.collection.documents.in_bulk(stated)
    return {documents[key].external_id: [one.grade for one in judged] for key, judged in stated.items()}


def judge(mapping: Mapping, name: str, grade: int, by: User, note: str = "") -> Judgment:
    document = mapping.collection.documents.get(external_id=name)
    return judge_document(mapping, Query.objects.get(), document, grade, by=by, note=note)


def test_a_document_is_found_under_every_reference(mapping: Mapping) -> None:
    assert grades(mapping, 1) == {"d1": [3, 1], "d2": [2]}


def test_the_grade_that_is_stated_is_the_one_that_counts(mapping: Mapping, ada: User) -> None:
    """Of several judgments of a document the highest counts: an other that stayed would outvote a lower grade."""
    judged = judge(mapping, "d1", 0, ada, "About apples.")
    assert (judged.source, judged.judge, judged.judged_by, judged.note) == ("human", "ada", ada, "About apples.")
    judge(mapping, "d2", 1, ada)
    judge(mapping, "d3", 2, ada)
    judge(mapping, "d3", 3, ada)
    assert grades(mapping, 2) == {"d1": [0], "d2": [1], "d3": [3]}
    assert grades(mapping, 1) == {"d1": [3, 1], "d2": [2]}, "the frozen version stays"
    references = [one.doc_ref for one in draft_of(mapping.dataset).judgments.order_by("ref_hash")]
    assert {"uri": "lib:2"} in references, "the reference that the dataset has is kept"
    assert {"document_id": "d3"} in references


def test_taking_it_away_takes_every_judgment_of_the_document(mapping: Mapping, ada: User) -> None:
    query, documents = Query.objects.get(), mapping.collection.documents
    unjudge_document(mapping, query, documents.get(external_id="d1"))
    assert grades(mapping, 2) == {"d2": [2]}
    with pytest.raises(JudgingError, match="has no judgment for 'q'"):
        unjudge_document(mapping, query, documents.get(external_id="d3"))


def test_sections_stay_with_the_judgment(mapping: Mapping, ada: User) -> None:
    set_judgment(mapping.dataset, "q", {"uri": "lib:2"}, 2, section_refs=["s1"])
    version = freeze(mapping.dataset)
    assert judge(mapping, "d2", 3, ada).section_refs == ["s1"]
    assert stored_hash(version) == version.content_hash


def test_it_refuses_what_no_value_would_show(mapping: Mapping, ada: User) -> None:
    document = mapping.collection.documents.get(external_id="d3")
    document.removed_at = document.created_at
    document.save()
    with pytest.raises(JudgingError, match="was removed from the collection"):
        judge(mapping, "d3", 1, ada)
    end_queries(open_draft(mapping.dataset), Query.objects.all())
    with pytest.raises(JudgingError, match="'q' was reworded or removed since"):
        judge(mapping, "d2", 1, ada)


def test_a_grade_that_is_stated_already_opens_no_draft(mapping: Mapping, ada: User) -> None:
    judged = judge(mapping, "d3", 1, ada)
    freeze(mapping.dataset)
    assert judge(mapping, "d3", 1, ada) == judged
    assert draft_of(mapping.dataset) is None
