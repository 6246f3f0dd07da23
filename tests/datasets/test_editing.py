"""Editing judgments in a draft, and freezing it."""

from typing import Any

import pytest

from apps.datasets.editing.drafts import (
    count_changes,
    discard_draft,
    end_queries,
    find_draft,
    freeze,
    open_draft,
    write_version,
)
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments, remove_judgment
from apps.datasets.importing import import_dataset
from apps.datasets.models import Dataset, Judgment, Query
from apps.datasets.records import DatasetError, DatasetRecord, JudgmentRecord, QueryRecord
from apps.datasets.versions import hash_version
from benchbench.errors import ConflictError
from tests.datasets.fruit import APPLE, PEAR
from tests.drafts import set_judgment


def grades(dataset: Dataset, number: int) -> dict[str, int]:
    version = dataset.versions.get(number=number)
    return {judgment.doc_ref["document_id"]: judgment.grade for judgment in version.judgments}


def test_draft_is_opened_once_from_the_newest_version(fruit):
    draft = open_draft(fruit)
    assert (draft.number, draft.frozen_at) == (2, None)
    assert open_draft(fruit) == draft
    assert grades(fruit, 2) == grades(fruit, 1) == {"apple": 3}


def test_edits_change_the_draft_not_the_frozen_version(fruit):
    set_judgment(fruit, "red", PEAR, 1, judge="mara")
    set_judgment(fruit, "red", APPLE, 2)
    set_judgment(fruit, "red", APPLE, 0, note="It was green.")
    assert grades(fruit, 1) == {"apple": 3}
    assert grades(fruit, 2) == {"apple": 0, "pear": 1}
    first = fruit.versions.get(number=1)
    assert hash_version(first) == first.content_hash
    assert Judgment.objects.count() == 3, "an edit of an edit leaves no row between"


def test_freezing_makes_the_next_version(fruit):
    set_judgment(fruit, "red", PEAR, 1)
    version = freeze(fruit, label="2", note="Late judgments.")
    assert (version.number, version.label, version.note) == (2, "2", "Late judgments.")
    assert (version.query_count, version.judgment_count) == (1, 2)
    assert version.content_hash == hash_version(version)
    set_judgment(fruit, "red", PEAR, 0)
    assert grades(fruit, 2) == {"apple": 3, "pear": 1}
    assert grades(fruit, 3) == {"apple": 3, "pear": 0}


def test_stating_the_same_again_changes_nothing(fruit):
    declared = set_judgment(fruit, "red", APPLE, 3, source=Judgment.Source.IMPORT)
    assert (declared, find_draft(fruit)) == (Judgment.objects.get(), None)
    first = set_judgment(fruit, "red", PEAR, 2, judge="mara")
    one = set_judgment(fruit, "red", PEAR, 1, judge="mara")
    assert set_judgment(fruit, "red", PEAR, 1, judge="mara") == one
    assert (one.pk, one.created_at) == (first.pk, first.created_at), "an edit of an edit keeps its row"


def test_invalid_judgments_and_missing_drafts_are_refused(fruit):
    with pytest.raises(DatasetError, match="has no query 'blue'"):
        set_judgment(fruit, "blue", APPLE, 1)
    with pytest.raises(DatasetError, match="The reference to the document has the unknown key 'url'"):
        set_judgment(fruit, "red", {"url": "x"}, 1)
    with pytest.raises(DatasetError, match="The grade 40000 is out of range"):
        set_judgment(fruit, "red", APPLE, 40_000)
    with pytest.raises(ConflictError, match="has no draft to freeze"):
        freeze(fruit)
    open_draft(fruit)
    with pytest.raises(ConflictError, match='has a version "1": choose another label'):
        freeze(fruit, label="1")


def test_an_import_waits_until_the_draft_is_frozen(fruit):
    set_judgment(fruit, "red", PEAR, 1)
    second = DatasetRecord("fruit", [QueryRecord("red", "crimson fruit")], label="3")
    with pytest.raises(ConflictError, match="has a draft with edits: freeze it before importing"):
        import_dataset(second)
    freeze(fruit)
    assert import_dataset(second).version.number == 3


def test_a_judgment_is_removed_from_the_draft_alone(fruit):
    remove_judgment(fruit, "red", APPLE)
    assert (grades(fruit, 1), grades(fruit, 2)) == ({"apple": 3}, {})
    first = fruit.versions.get(number=1)
    assert hash_version(first) == first.content_hash
    set_judgment(fruit, "red", APPLE, 1)
    assert (grades(fruit, 1), grades(fruit, 2)) == ({"apple": 3}, {"apple": 1})
    remove_judgment(fruit, "red", APPLE)
    assert Judgment.objects.count() == 1, "what only the draft had is gone"
    freeze(fruit)
    set_judgment(fruit, "red", APPLE, 2)
    freeze(fruit)
    assert [grades(fruit, number) for number in (1, 2, 3)] == [{"apple": 3}, {}, {"apple": 2}]
    assert all(hash_version(version) == version.content_hash for version in fruit.versions.all())


def test_removing_a_missing_judgment_fails_without_a_draft(fruit):
    with pytest.raises(DatasetError, match="has no judgment of that document"):
        remove_judgment(fruit, "red", PEAR)
    with pytest.raises(DatasetError, match="has no query 'blue'"):
        remove_judgment(fruit, "blue", APPLE)
    assert find_draft(fruit) is None


def test_a_discarded_draft_leaves_nothing_behind(fruit):
    before = list(Judgment.objects.order_by("pk").values())
    set_judgment(fruit, "red", PEAR, 1)
    set_judgment(fruit, "red", APPLE, 2)
    discard_draft(fruit)
    assert list(Judgment.objects.order_by("pk").values()) == before
    assert [version.number for version in fruit.versions.all()] == [1]
    with pytest.raises(ConflictError, match="has no draft to discard"):
        discard_draft(fruit)
    set_judgment(fruit, "red", APPLE, 2)
    assert grades(fruit, freeze(fruit).number) == {"apple": 2}, "the next draft has the same number"


def test_discarding_restores_reworded_and_removed_queries(fruit):
    set_judgment(fruit, "red", PEAR, 1)
    freeze(fruit)
    frozen = {version.number: version.content_hash for version in fruit.versions.all()}
    rows = list(Query.objects.values()), list(Judgment.objects.order_by("pk").values())
    records = [QueryRecord("red", "crimson fruit", [JudgmentRecord(PEAR, 2)]), QueryRecord("new", "new fruit")]
    write_version(open_draft(fruit), records)
    discard_draft(fruit)
    assert (list(Query.objects.values()), list(Judgment.objects.order_by("pk").values())) == rows
    assert {version.number: hash_version(version) for version in fruit.versions.all()} == frozen


def test_draft_counts_its_changes(fruit):
    draft = open_draft(fruit)
    assert (count_changes(draft).total, count_changes(draft).sentence) == (0, "no changes")
    set_judgment(fruit, "red", PEAR, 1)
    set_judgment(fruit, "red", PEAR, 2)
    assert count_changes(draft).sentence == "1 change: 1 judgment added"
    set_judgment(fruit, "red", APPLE, 2)
    assert count_changes(draft).sentence == "2 changes: 1 judgment added, 1 judgment changed"
    remove_judgment(fruit, "red", PEAR)
    remove_judgment(fruit, "red", APPLE)
    assert count_changes(draft).sentence == "1 change: 1 judgment removed"
    end_queries(draft, fruit.queries.filter(key="red"))
    assert count_changes(draft).sentence == "1 change: 1 query changed"


def edit(doc_ref: dict[str, Any], grade: int | None, key: str = "red") -> JudgmentEdit:
    return JudgmentEdit(key, doc_ref, None if grade is None else JudgmentRecord(doc_ref, grade))


def counts(dataset: Dataset, *edits: JudgmentEdit) -> tuple[int, ...]:
    finished = edit_judgments(dataset, edits)
    return finished.version.number, finished.added, finished.changed, finished.removed, finished.unchanged


def test_it_adds_changes_and_removes_in_the_draft(fruit):
    assert counts(fruit, edit(PEAR, 1), edit(APPLE, 2)) == (2, 1, 1, 0, 0)
    assert (grades(fruit, 1), grades(fruit, 2)) == ({"apple": 3}, {"apple": 2, "pear": 1})
    assert counts(fruit, edit(PEAR, 0), edit(APPLE, None), edit({"uri": "x:fig", "document_id": "fig"}, 1))[1:] == (
        *(1, 1, 1, 0),
    )
    assert (grades(fruit, 1), grades(fruit, 2)) == ({"apple": 3}, {"pear": 0, "fig": 1})
    assert Judgment.objects.count() == 3, "an edit of an edit leaves no row between"
    freeze(fruit)
    assert all(hash_version(version) == version.content_hash for version in fruit.versions.all())


def test_the_same_again_opens_no_draft(fruit):
    assert counts(fruit, edit(APPLE, 3)) == (1, 0, 0, 0, 1)
    assert find_draft(fruit) is None


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        (edit(APPLE, 1, key="blue"), "judgments[1].query_key", "has no query 'blue'"),
        (edit({"url": "x"}, 1), "judgments[1].doc_ref", "has the unknown key 'url'"),
        (edit({"uri": "u" * 2_001}, 1), "judgments[1].doc_ref", "has more than 2,000 characters in its uri"),
        (edit({"uri": "x"}, None), "judgments[1].doc_ref", "no judgment of that document to remove"),
        (edit(PEAR, 2), "judgments[1]", r"names the same query and document as judgments\[0\]"),
        (edit(APPLE, 40_000), "judgments[1].grade", "out of range"),
    ],
)
def test_one_invalid_edit_is_named_and_none_is_stored(fruit, wrong, field, message):
    with pytest.raises(DatasetError, match=message) as raised:
        edit_judgments(fruit, [edit(PEAR, 1), wrong, edit(APPLE, 0)])
    assert raised.value.field == field
    assert (find_draft(fruit), Judgment.objects.count()) == (None, 1)


def test_bulk_edit_uses_few_database_queries(fruit, django_assert_max_num_queries):
    with django_assert_max_num_queries(16):
        edit_judgments(fruit, [edit({"document_id": str(number)}, 1) for number in range(200)])
