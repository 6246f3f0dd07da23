"""What two versions of a dataset differ in."""

from typing import Any

import pytest

from apps.datasets.editing.differences import Difference
from apps.datasets.editing.drafts import difference_of, draft_of, freeze
from apps.datasets.editing.judgments import remove_judgment
from apps.datasets.editing.queries import add_query, edit_query, remove_query
from apps.datasets.models import Dataset
from apps.datasets.records import JudgmentRecord, QueryRecord
from tests.drafts import set_judgment
from tests.factories import make_dataset

pytestmark = pytest.mark.django_db
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


def told(difference: Difference) -> dict[str, Any]:
    return {
        "judgments added": [(row.query.key, row.doc_ref) for row in difference.judgments_added],
        "judgments changed": [(r.query.key, r.doc_ref, r.grade_before, r.grade) for r in difference.judgments_changed],
        "judgments removed": [(row.query.key, row.doc_ref) for row in difference.judgments_removed],
        "queries added": [row.key for row in difference.queries_added],
        "queries changed": [(row.key, row.text_before, row.text) for row in difference.queries_changed],
        "queries removed": [row.key for row in difference.queries_removed],
    }


def test_a_draft_is_held_against_the_version_before_it(dataset: Dataset) -> None:
    edit(dataset)
    draft = draft_of(dataset)
    assert draft is not None
    expected = {
        "judgments added": [("kept", C)],
        "judgments changed": [("kept", A, 1, 0), ("worded", B, 2, 1)],
        "judgments removed": [("kept", B)],
        "queries added": ["new"],
        "queries changed": [("worded", "What is worded?", "Other words?")],
        "queries removed": ["gone"],
    }
    assert told(difference_of(draft)) == expected
    counts = difference_of(draft).counts()
    assert (counts.added, counts.changed, counts.removed, counts.queries) == (1, 2, 1, 3)
    version = freeze(dataset)
    set_judgment(dataset, "new", C, 1)
    later = freeze(dataset)
    assert told(Difference(later, since=1)) == expected, "the query is new, whatever its judgments"
    assert told(Difference(later, since=version.number))["judgments added"] == [("new", C)]
    assert len(told(Difference(version, since=0))["queries added"]) == 3


def test_what_is_edited_there_and_back_is_no_difference(dataset: Dataset, django_assert_num_queries: Any) -> None:
    for grade, words in ((3, "Other?"), (1, "What is kept?")):
        set_judgment(dataset, "kept", A, grade, source="import")
        edit_query(dataset.queries.get(key="kept", until=None), {"text": words})
    draft = draft_of(dataset)
    assert draft is not None
    with django_assert_num_queries(1):
        assert difference_of(draft).counts().sentence == "no changes"
    set_judgment(dataset, "kept", A, 1, source="import", section_refs=["s1"])
    assert difference_of(draft).counts().sentence == "1 change: 1 judgment changed"


def test_the_digest_follows_every_edit(dataset: Dataset) -> None:
    seen = set()
    for grade in (2, 3, 2):
        set_judgment(dataset, "kept", A, grade)
        draft = draft_of(dataset)
        assert draft is not None
        seen.add(difference_of(draft).digest)
    assert len(seen) == 2
