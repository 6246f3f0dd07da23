"""Many judgments stated in one act."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from apps.datasets.editing.drafts import draft_of, freeze
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments
from apps.datasets.models import Dataset, Judgment
from apps.datasets.records import DatasetError, JudgmentRecord
from apps.datasets.versions import stored_hash
from tests.datasets.test_editing import APPLE, PEAR, fruit, grades  # noqa: F401 (a fixture)


def edit(doc_ref: dict[str, Any], grade: int | None, key: str = "red") -> JudgmentEdit:
    return JudgmentEdit(key, doc_ref, None if grade is None else JudgmentRecord(doc_ref, grade))


def counts(dataset: Dataset, *edits: JudgmentEdit) -> tuple[int, ...]:
    done = edit_judgments(dataset, edits)
    return done.version.number, done.added, done.changed, done.removed, done.unchanged


def test_it_adds_changes_and_removes_in_the_draft(fruit: Dataset) -> None:  # noqa: F811
    assert counts(fruit, edit(PEAR, 1), edit(APPLE, 2)) == (2, 1, 1, 0, 0)
    assert (grades(fruit, 1), grades(fruit, 2)) == ({"apple": 3}, {"apple": 2, "pear": 1})
    assert counts(fruit, edit(PEAR, 0), edit(APPLE, None), edit({"uri": "x:fig", "document_id": "fig"}, 1))[1:] == (
        *(1, 1, 1, 0),
    )
    assert (grades(fruit, 1), grades(fruit, 2)) == ({"apple": 3}, {"pear": 0, "fig": 1})
    assert Judgment.objects.count() == 3, "an edit of an edit leaves no row between"
    freeze(fruit)
    assert all(stored_hash(version) == version.content_hash for version in fruit.versions.all())


def test_the_same_again_opens_no_draft(fruit: Dataset) -> None:  # noqa: F811
    assert counts(fruit, edit(APPLE, 3)) == (1, 0, 0, 0, 1)
    assert draft_of(fruit) is None


@pytest.mark.parametrize(
    ("wrong", "field", "told"),
    [
        (edit(APPLE, 1, key="blue"), "judgments[1].query_key", "has no query 'blue'"),
        (edit({"url": "x"}, 1), "judgments[1].doc_ref", "has the unknown key 'url'"),
        (edit({"uri": "u" * 2_001}, 1), "judgments[1].doc_ref", "has more than 2,000 characters in its uri"),
        (edit({"uri": "x"}, None), "judgments[1].doc_ref", "no judgment of that document to take away"),
        (edit(PEAR, 2), "judgments[1]", r"names the same query and document as judgments\[0\]"),
        (edit(APPLE, 40_000), "judgments[1].grade", "out of range"),
    ],
)
def test_one_that_is_wrong_is_named_and_none_is_kept(
    fruit: Dataset,  # noqa: F811
    wrong: JudgmentEdit,
    field: str,
    told: str,
) -> None:
    with pytest.raises(DatasetError, match=told) as raised:
        edit_judgments(fruit, [edit(PEAR, 1), wrong, edit(APPLE, 0)])
    assert raised.value.field == field
    assert (draft_of(fruit), Judgment.objects.count()) == (None, 1)


def test_it_takes_few_queries_whatever_their_number(
    fruit: Dataset,  # noqa: F811
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_max_num_queries(16):
        edit_judgments(fruit, [edit({"document_id": str(number)}, 1) for number in range(200)])
