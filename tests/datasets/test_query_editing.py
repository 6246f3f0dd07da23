"""Adding, rewording and removing queries in a draft."""

import pytest

from apps.datasets.editing.drafts import changes_of, discard_draft, draft_of, freeze
from apps.datasets.editing.queries import OutdatedError, QueryExistsError, add_query, edit_query, remove_query
from apps.datasets.models import Dataset, DatasetVersion, Judgment, Query
from apps.datasets.records import DatasetError, JudgmentRecord, QueryRecord
from apps.datasets.versions import stored_hash
from benchbench.errors import ConflictError
from tests.datasets.conftest import APPLE, PEAR
from tests.drafts import set_judgment


def texts(version: DatasetVersion) -> dict[str, str]:
    return dict(version.queries.values_list("key", "text"))


def draft(dataset: Dataset) -> DatasetVersion:
    found = draft_of(dataset)
    assert found is not None
    return found


def first_stands(dataset: Dataset) -> bool:
    """Whether version 1 is what it was."""
    first = dataset.versions.get(number=1)
    return stored_hash(first) == first.content_hash and texts(first) == {"red": "red fruit"}


def test_it_adds_a_query_with_its_judgments(fruit: Dataset) -> None:
    record = QueryRecord("new", "new fruit", [JudgmentRecord(PEAR, 2)], slices=["late"])
    query = add_query(fruit, record)
    assert (query.since, query.slices, query.judgments.get().doc_ref) == (2, ["late"], PEAR)
    assert texts(draft(fruit)) == {"red": "red fruit", "new": "new fruit"}
    assert changes_of(draft(fruit)).sentence == "1 change: 1 query changed"
    version = freeze(fruit)
    assert (version.query_count, version.judgment_count, first_stands(fruit)) == (2, 2, True)


@pytest.mark.parametrize(
    ("record", "told"),
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
def test_it_refuses_what_is_no_new_query(fruit: Dataset, record: QueryRecord, told: str) -> None:
    with pytest.raises((DatasetError, QueryExistsError), match=told):
        add_query(fruit, record)
    assert draft_of(fruit) is None


def test_a_query_that_is_worded_anew_keeps_its_judgments(fruit: Dataset) -> None:
    old = Query.objects.get()
    set_judgment(fruit, "red", PEAR, 1, note="late")
    new = edit_query(old, {"text": "crimson fruit", "category": "colour"})
    assert (new.pk != old.pk, new.key, new.text, new.category) == (True, "red", "crimson fruit", "colour")
    kept = {row.doc_ref["document_id"]: (row.grade, row.note) for row in draft(fruit).judgments}
    assert kept == {"apple": (3, ""), "pear": (1, "late")}
    again = edit_query(new, {"text": "scarlet fruit"})
    assert (again.pk, texts(draft(fruit))) == (new.pk, {"red": "scarlet fruit"}), "only the draft has that row"
    assert first_stands(fruit)
    freeze(fruit)
    assert [stored_hash(version) == version.content_hash for version in fruit.versions.all()] == [True, True]


def test_the_same_wording_opens_no_draft(fruit: Dataset) -> None:
    query = Query.objects.get()
    assert edit_query(query, {"text": "red fruit", "slices": []}) == query
    assert draft_of(fruit) is None
    with pytest.raises(DatasetError, match="needs a key and a text"):
        edit_query(query, {"text": " "})


def test_what_only_frozen_versions_have_is_not_edited(fruit: Dataset) -> None:
    old = Query.objects.get()
    new = edit_query(old, {"text": "crimson fruit"})
    with pytest.raises(OutdatedError, match=f"changed in version 2: edit the one of the id {new.pk}"):
        edit_query(old, {"text": "scarlet fruit"})
    remove_query(new)
    with pytest.raises(OutdatedError, match="removed in version 2"):
        remove_query(old)


def test_a_query_is_removed_from_the_draft_alone(fruit: Dataset) -> None:
    set_judgment(fruit, "red", PEAR, 1)
    remove_query(Query.objects.get())
    assert (texts(draft(fruit)), draft(fruit).judgments.count(), first_stands(fruit)) == ({}, 0, True)
    with pytest.raises(ConflictError, match="has no query left"):
        freeze(fruit)
    added = add_query(fruit, QueryRecord("red", "red fruit again"))
    remove_query(added)
    assert not Query.objects.filter(pk=added.pk).exists(), "what only the draft had is gone"


def test_discarding_undoes_all_of_it(fruit: Dataset) -> None:
    before = list(Query.objects.values()), list(Judgment.objects.values())
    query = edit_query(Query.objects.get(), {"text": "crimson fruit"})
    set_judgment(fruit, "red", PEAR, 1)
    remove_query(query)
    add_query(fruit, QueryRecord("red", "another", [JudgmentRecord(APPLE, 1)]))
    discard_draft(fruit)
    assert (list(Query.objects.values()), list(Judgment.objects.values())) == before
