"""Names that are taken where nobody stated one."""

from collections.abc import Callable
from typing import Any

import pytest

from apps.collections.importing import create_collection, ensure_collection, import_documents
from apps.collections.records import DocumentRecord
from apps.datasets.importing import ensure_dataset, import_dataset
from apps.datasets.records import DatasetRecord, QueryRecord
from apps.mappings.creating import create_mapping, ensure_external
from benchbench import names
from tests.factories import make_collection, make_dataset

pytestmark = pytest.mark.django_db


def record(key):
    return DatasetRecord("asked", [QueryRecord(key, f"What is {key}?")])


def document(id):
    return DocumentRecord(id, "", f"text of {id}")


def fill(name, id):
    collection = create_collection(name)
    import_documents(collection, [document(id)])
    return collection


Act = Callable[[], Any]
Rival = Callable[[str], Any]
TAKEN = {
    "a mapping": (
        lambda: create_mapping(make_dataset(), make_collection()),
        lambda name: create_mapping(make_dataset(name="other"), make_collection("elsewhere"), name=name),
        "questions on library (2)",
    ),
    "a collection": (
        lambda: ensure_collection([document("a")], name="docs")[0],
        lambda name: fill(name, "b"),
        "docs (2)",
    ),
    "a dataset": (
        lambda: ensure_dataset(record("a"), name="asked", source="mine").version.dataset,
        lambda name: import_dataset(record("b"), name=name).version.dataset,
        "asked (2)",
    ),
    "an external mapping": (
        lambda: ensure_external(make_dataset()),
        lambda name: create_mapping(make_dataset(name="other"), make_collection("elsewhere"), name=name),
        "questions (external runs) (2)",
    ),
    "a collection of external runs": (
        lambda: ensure_external(make_dataset()).collection,
        create_collection,
        "questions (external runs) (2)",
    ),
}
SAME = {
    "a collection": (lambda: ensure_collection([document("a")], name="docs")[0], lambda name: fill(name, "a")),
    "a dataset": (
        lambda: ensure_dataset(record("a"), name="asked", source="mine").version.dataset,
        lambda name: import_dataset(record("a"), name=name).version.dataset,
    ),
}


@pytest.fixture
def rivals(monkeypatch):
    """Let somebody take the first free name in the moment in which it is chosen; return what they made."""

    def set_up(rival):
        made = []
        free_name = names.find_free_name

        def taken_at_once(name, taken):
            chosen = free_name(name, taken)
            if not made:
                made.append(None)  # a rival that chooses a name too has none
                made[0] = rival(chosen)
            return chosen

        monkeypatch.setattr(names, "find_free_name", taken_at_once)
        return made

    return set_up


@pytest.mark.parametrize("kind", TAKEN)
def test_name_taken_concurrently_is_replaced_by_the_next(rivals, kind):
    act, rival, name = TAKEN[kind]
    theirs = rivals(rival)
    made = act()
    (other,) = theirs
    assert (made.name, other.name) == (name, name.removesuffix(" (2)"))
    other.refresh_from_db()
    assert other.name == name.removesuffix(" (2)"), "theirs stays as it was"
    if kind == "a dataset":
        assert [dataset.versions.count() for dataset in (made, other)] == [1, 1]


@pytest.mark.parametrize("kind", SAME)
def test_equal_object_created_concurrently_is_reused(rivals, kind):
    act, rival = SAME[kind]
    theirs = rivals(rival)
    assert act() == theirs[0]
