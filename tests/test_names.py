"""Names that are taken where no one stated one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth import get_user_model

from apps.accounts.models import AccessToken, SavedView
from apps.accounts.saving import save_view
from apps.accounts.tokens import issue_token
from apps.collections.editing import edit_collection
from apps.collections.importing import create_collection, ensure_collection, import_documents
from apps.collections.models import Collection
from apps.collections.records import DocumentRecord
from apps.datasets.importing import ensure_dataset, foresee, import_dataset
from apps.datasets.models import Dataset
from apps.datasets.records import DatasetRecord, QueryRecord
from apps.mappings.creating import create_mapping, ensure_external
from apps.mappings.models import Mapping
from apps.records.models import Baseline, Benchmark
from apps.retrieval.indexing import create_index
from apps.retrieval.models import Index
from apps.verdicts.gates.baselines import approve
from benchbench import names
from benchbench.errors import ConflictError
from benchbench.models import NamedModel
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping

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
    """Let someone take the first free name in the moment in which it is chosen; return what they made."""

    def set_up(rival):
        created = []
        free_name = names.find_free_name

        def taken_at_once(name, taken):
            chosen = free_name(name, taken)
            if not created:
                created.append(None)  # a rival that chooses a name too lacks it
                created[0] = rival(chosen)
            return chosen

        monkeypatch.setattr(names, "find_free_name", taken_at_once)
        return created

    return set_up


@pytest.mark.parametrize("kind", TAKEN)
def test_name_taken_concurrently_is_replaced_by_the_next(rivals, kind):
    act, rival, name = TAKEN[kind]
    theirs = rivals(rival)
    created = act()
    (second,) = theirs
    assert (created.name, second.name) == (name, name.removesuffix(" (2)"))
    second.refresh_from_db()
    assert second.name == name.removesuffix(" (2)"), "theirs stays as it was"
    if kind == "a dataset":
        assert [dataset.versions.count() for dataset in (created, second)] == [1, 1]


@pytest.mark.parametrize("kind", SAME)
def test_equal_object_created_concurrently_is_reused(rivals, kind):
    act, rival = SAME[kind]
    theirs = rivals(rival)
    assert act() == theirs[0]


NAMED_BY_OTHERS = {"judging.LLMJudge"}  # by the names of models
TWINS = {"Caf\u00e9": "cafe\u0301", "Golden": "gOLDEN", "Stra\u00dfe": "STRASSE", "A b": "\uff21  b"}
CREATORS: dict[type, Callable[[str], Any]] = {
    Collection: create_collection,
    Dataset: lambda name: import_dataset(record("a"), name=name).version.dataset,
    Mapping: lambda name: create_mapping(make_dataset(name=f"of {name}"), make_collection(f"of {name}"), name=name),
    Index: lambda name: create_index(first_collection(), name=name),
    Baseline: lambda name: approve(first_run(), name=name, reason="good", by=None),
    AccessToken: lambda name: issue_token(first_user(), name=name)[0],
    SavedView: lambda name: save_view(first_user(), listed="benchmarks.run", name=name, query="o=1"),
}


def first_collection():
    return Collection.objects.filter(name="texts").first() or fill("texts", "a")


def first_user():
    return get_user_model().objects.get_or_create(username="mara")[0]


def first_run():
    benchmark = Benchmark.objects.first() or make_benchmark(make_mapping(make_dataset(), make_collection()), [0.5])
    return benchmark.runs.first()


def test_every_distinct_name_of_users_is_named():
    unique = {
        model
        for model in apps.get_models()
        for constraint in model._meta.constraints
        if "name" in getattr(constraint, "fields", ()) and model._meta.label not in NAMED_BY_OTHERS
    }
    assert unique == set(CREATORS)
    assert all(issubclass(model, NamedModel) for model in unique)


@pytest.mark.parametrize("model", CREATORS)
@pytest.mark.parametrize("name", TWINS)
def test_names_that_look_alike_are_refused(model, name):
    created = CREATORS[model](name)
    with pytest.raises(ConflictError, match="differs only in case or Unicode form") as refused:
        CREATORS[model](TWINS[name])
    assert refused.value.field == "name"
    assert model.objects.filter(name__in=[name, TWINS[name]]).get() == created


def test_a_free_name_differs_in_more_than_case():
    create_collection("Docs")
    assert ensure_collection([document("b")], name="docs")[0].name == "docs (2)"
    assert names.find_free_name("\uff24ocs", ["docs"]) == "\uff24ocs (2)"


def test_stored_names_stay_as_they_are():
    """A database may have such names: their rows can still be saved, and renamed apart."""
    first, second = create_collection("docs"), create_collection("other")
    Collection.objects.filter(pk=second.pk).update(name="Docs")
    second.refresh_from_db()
    second.description = "older"
    second.save()
    edit_collection(second, description="old")
    edit_collection(second, name="Documents")
    with pytest.raises(ConflictError, match="differs only in case"):
        edit_collection(second, name="DOCS")
    with pytest.raises(ConflictError, match="differs only in case"):
        foresee(record("a"), name=import_dataset(record("b"), name="judged").version.dataset.name.upper())
    edit_collection(first, name="Docs")


def test_another_owner_may_have_the_name():
    create_collection("docs")
    assert create_collection("Docs", owner=first_user()).name == "Docs"
