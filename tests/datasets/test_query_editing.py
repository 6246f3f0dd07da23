"""Adding, rewording and removing queries in a draft, and what two versions differ in."""

from typing import Any

import pytest

from apps.datasets.editing.differences import Difference
from apps.datasets.editing.drafts import build_difference, count_changes, discard_draft, find_draft, freeze
from apps.datasets.editing.judgments import remove_judgment
from apps.datasets.editing.queries import OutdatedError, QueryExistsError, add_query, edit_query, remove_query
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import DatasetError, JudgmentRecord, QueryRecord
from apps.datasets.versions import hash_version
from benchbench.errors import ConflictError
from tests.datasets.fruit import APPLE, PEAR
from tests.drafts import set_judgment
from tests.factories import make_dataset


def texts(version: DatasetVersion) -> dict[str, str]:
    return dict(version.queries.values_list("key", "text"))


def draft(dataset: Dataset) -> DatasetVersion:
    result = find_draft(dataset)
    assert result is not None
    return result


def first_stands(dataset: Dataset) -> bool:
    """Whether version 1 is what it was."""
    first = dataset.versions.get(number=1)
    return hash_version(first) == first.content_hash and texts(first) == {"red": "red fruit"}


def test_it_adds_a_query_with_its_judgments(fruit):
    record = QueryRecord("new", "new fruit", [JudgmentRecord(PEAR, 2)], slices=["late"])
    query = add_query(fruit, record)
    assert (query.since, query.slices, query.judgments.get().doc_ref) == (2, ["late"], PEAR)
    assert texts(draft(fruit)) == {"red": "red fruit", "new": "new fruit"}
    assert count_changes(draft(fruit)).sentence == "1 change: 1 query changed"
    version = freeze(fruit)
    assert (version.query_count, version.judgment_count, first_stands(fruit)) == (2, 2, True)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (QueryRecord("red", "again"), "has a query 'red': edit that one"),
        (QueryRecord(" ", "text"), "needs a key and a text"),
        (QueryRecord("k", "t", [JudgmentRecord({"url": "x"}, 1)]), "has the unknown key 'url'"),
        (QueryRecord("k", "t", [JudgmentRecord(PEAR, 1), JudgmentRecord(PEAR, 2)]), "judges a document twice"),
        (QueryRecord("k", "t", category="x" * 101), "more than 100 characters in its category"),
        (QueryRecord("k", "t" * 1_000_000), "more than 100,000 characters in its text"),
        (QueryRecord("k", "t", [JudgmentRecord({"uri": "u" * 2_001}, 1)]), "a uri of more than 2,000 characters"),
    ],
)
def test_invalid_or_existing_queries_are_refused(fruit, record, message):
    with pytest.raises((DatasetError, QueryExistsError), match=message):
        add_query(fruit, record)
    assert find_draft(fruit) is None


def test_reworded_query_keeps_its_judgments(fruit):
    old = Query.objects.get()
    set_judgment(fruit, "red", PEAR, 1, note="late")
    new = edit_query(old, {"text": "crimson fruit", "category": "colour"})
    assert (new.pk != old.pk, new.key, new.text, new.category) == (True, "red", "crimson fruit", "colour")
    stored = {row.doc_ref["document_id"]: (row.grade, row.note) for row in draft(fruit).judgments}
    assert stored == {"apple": (3, ""), "pear": (1, "late")}
    again = edit_query(new, {"text": "scarlet fruit"})
    assert (again.pk, texts(draft(fruit))) == (new.pk, {"red": "scarlet fruit"}), "only the draft has that row"
    assert first_stands(fruit)
    freeze(fruit)
    assert [hash_version(version) == version.content_hash for version in fruit.versions.all()] == [True, True]


def test_the_same_wording_opens_no_draft(fruit):
    query = Query.objects.get()
    assert edit_query(query, {"text": "red fruit", "slices": []}) == query
    assert find_draft(fruit) is None
    with pytest.raises(DatasetError, match="needs a key and a text"):
        edit_query(query, {"text": " "})


def test_queries_only_in_frozen_versions_cannot_be_edited(fruit):
    old = Query.objects.get()
    new = edit_query(old, {"text": "crimson fruit"})
    with pytest.raises(OutdatedError, match=f"changed in version 2: edit the one of the id {new.pk}"):
        edit_query(old, {"text": "scarlet fruit"})
    remove_query(new)
    with pytest.raises(OutdatedError, match="removed in version 2"):
        remove_query(old)


def test_a_query_is_removed_from_the_draft_alone(fruit):
    set_judgment(fruit, "red", PEAR, 1)
    remove_query(Query.objects.get())
    assert (texts(draft(fruit)), draft(fruit).judgments.count(), first_stands(fruit)) == ({}, 0, True)
    with pytest.raises(ConflictError, match="has no queries"):
        freeze(fruit)
    added = add_query(fruit, QueryRecord("red", "red fruit again"))
    remove_query(added)
    assert not Query.objects.filter(pk=added.pk).exists(), "what only the draft had is gone"


def test_discarding_undoes_all_of_it(fruit):
    before = list(Query.objects.values()), list(Judgment.objects.values())
    query = edit_query(Query.objects.get(), {"text": "crimson fruit"})
    set_judgment(fruit, "red", PEAR, 1)
    remove_query(query)
    add_query(fruit, QueryRecord("red", "another", [JudgmentRecord(APPLE, 1)]))
    discard_draft(fruit)
    assert (list(Query.objects.values()), list(Judgment.objects.values())) == before


A, B, C = ({"document_id": name} for name in "abc")


@pytest.fixture
def dataset() -> Dataset:
    return make_dataset({"kept": [(A, 1), (B, 1)], "worded": [(A, 2), (B, 2)], "gone": [(A, 3)]})


def edit(dataset: Dataset) -> None:
    set_judgment(dataset, "kept", A, 0, source="import")
    remove_judgment(dataset, "kept", B)
    set_judgment(dataset, "kept", C, 2, section_refs=["s1"])
    edit_query(dataset.queries.get(key="worded", until=None), {"text": "Other words?"})
    set_judgment(dataset, "worded", B, 1, source="import")
    remove_query(dataset.queries.get(key="gone"))
    add_query(dataset, QueryRecord("new", "New?", [JudgmentRecord(A, 1), JudgmentRecord(B, 1)]))


def difference_rows(difference: Difference) -> dict[str, Any]:
    return {
        "judgments added": [(row.query.key, row.doc_ref) for row in difference.judgments_added],
        "judgments changed": [(r.query.key, r.doc_ref, r.grade_before, r.grade) for r in difference.judgments_changed],
        "judgments removed": [(row.query.key, row.doc_ref) for row in difference.judgments_removed],
        "queries added": [row.key for row in difference.queries_added],
        "queries changed": [(row.key, row.text_before, row.text) for row in difference.queries_changed],
        "queries removed": [row.key for row in difference.queries_removed],
    }


@pytest.mark.django_db
def test_a_draft_is_held_against_the_version_before_it(dataset):
    edit(dataset)
    draft = find_draft(dataset)
    assert draft is not None
    expected = {
        "judgments added": [("kept", C)],
        "judgments changed": [("kept", A, 1, 0), ("worded", B, 2, 1)],
        "judgments removed": [("kept", B)],
        "queries added": ["new"],
        "queries changed": [("worded", "What is worded?", "Other words?")],
        "queries removed": ["gone"],
    }
    assert difference_rows(build_difference(draft)) == expected
    counts = build_difference(draft).counts()
    assert (counts.added, counts.changed, counts.removed, counts.queries) == (1, 2, 1, 3)
    version = freeze(dataset)
    set_judgment(dataset, "new", C, 1)
    later = freeze(dataset)
    assert difference_rows(Difference(later, since=1)) == expected, "the query is new, whatever its judgments"
    assert difference_rows(Difference(later, since=version.number))["judgments added"] == [("new", C)]
    assert len(difference_rows(Difference(version, since=0))["queries added"]) == 3


@pytest.mark.django_db
def test_reverted_edits_are_no_difference(dataset, django_assert_num_queries):
    for grade, words in ((3, "Other?"), (1, "What is kept?")):
        set_judgment(dataset, "kept", A, grade, source="import")
        edit_query(dataset.queries.get(key="kept", until=None), {"text": words})
    draft = find_draft(dataset)
    assert draft is not None
    with django_assert_num_queries(1):
        assert build_difference(draft).counts().sentence == "no changes"
    set_judgment(dataset, "kept", A, 1, source="import", section_refs=["s1"])
    assert build_difference(draft).counts().sentence == "1 change: 1 judgment changed"


@pytest.mark.django_db
def test_the_digest_follows_every_edit(dataset):
    seen = set()
    for grade in (2, 3, 2):
        set_judgment(dataset, "kept", A, grade)
        draft = find_draft(dataset)
        assert draft is not None
        seen.add(build_difference(draft).digest)
    assert len(seen) == 2
