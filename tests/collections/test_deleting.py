"""Deleting a collection."""

import pytest
from django.contrib.auth.models import Group, User
from pytest_django import DjangoAssertNumQueries

from apps.collections.editing import delete_collection
from apps.collections.importing import create_collection, import_documents
from apps.collections.models import Collection, Document
from apps.collections.records import DocumentRecord, SectionRecord
from apps.datasets.models import Dataset
from apps.execution.launching import delete_benchmark
from apps.mappings.creating import delete_dataset
from apps.mappings.models import Mapping
from apps.retrieval.deleting import delete_index
from apps.retrieval.models import Chunk, ChunkSet, Index
from benchbench.errors import ConflictError
from tests.factories import make_benchmark, make_collection, make_dataset, make_mapping, make_schedule


@pytest.fixture
def fruit(db: None) -> Collection:
    collection = create_collection("fruit")
    import_documents(collection, [DocumentRecord("apple", "Apple", "red", sections=(SectionRecord("s"),))])
    return collection


def test_deleting_removes_documents_sections_and_leftover_chunks(fruit: Collection) -> None:
    chunks = ChunkSet.objects.create(collection=fruit, fingerprint="f")
    Chunk.objects.create(chunk_set=chunks, document=fruit.documents.get(), ordinal=0, position=0, text="red")
    delete_collection(fruit)
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


def test_documents_go_in_a_few_statements(
    fruit: Collection, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    import_documents(fruit, [DocumentRecord(f"{n}", "", "red", sections=(SectionRecord("s"),)) for n in range(1500)])
    with django_assert_max_num_queries(20):
        delete_collection(fruit)
    assert not Document.objects.exists()


def test_collection_used_by_mapping_or_index_is_not_deleted(fruit: Collection) -> None:
    Index.objects.create(collection=fruit, name="whole")
    with pytest.raises(
        ConflictError, match=r'^The collection "fruit" cannot be deleted: it is used by the index "whole"'
    ):
        delete_collection(fruit)
    for number in range(2):
        Mapping.objects.create(name=f"m{number}", collection=fruit, dataset=Dataset.objects.create(name=f"d{number}"))
    with pytest.raises(ConflictError, match=r'2 mappings \("m[01]" among them\)'):
        delete_collection(fruit)
    assert Document.objects.count() == 1


@pytest.mark.parametrize("kind", ["collection", "dataset", "benchmark", "index"])
def test_refused_deletion_deletes_nothing_before(db: None, kind: str, statements: list[str]) -> None:
    dataset, collection = make_dataset({"q": [("d1", 1)]}), make_collection(documents=[{}])
    mapping = make_mapping(dataset, collection)
    benchmark = make_benchmark(mapping, [0.5])
    make_schedule(benchmark)
    index = Index.objects.create(collection=collection, name="whole")
    benchmark.runs.update(index=index)
    free = make_collection("free", owner=None)
    make_mapping(dataset, free, name="another, which could be deleted")
    act = {
        "collection": lambda: delete_collection(collection),
        "dataset": lambda: delete_dataset(dataset),
        "benchmark": lambda: delete_benchmark(benchmark),
        "index": lambda: delete_index(index),
    }[kind]
    statements.clear()
    with pytest.raises(ConflictError):
        act()
    assert not [statement for statement in statements if statement.lstrip().upper().startswith(("DELETE", "DROP"))]
    assert not [statement for statement in statements if 'FROM "collections_document"' in statement]


def test_error_counts_private_objects_without_naming_them(fruit: Collection) -> None:
    bob = User.objects.create_user("bob")
    Index.objects.create(collection=fruit, name="secret", owner=bob)
    with pytest.raises(ConflictError, match=r"used by one index of another owner\. Delete"):
        delete_collection(fruit)
    Index.objects.create(collection=fruit, name="whole")
    with pytest.raises(ConflictError, match=r'it is used by 2 indexes \("whole" among them\)'):
        delete_collection(fruit)
    Index.objects.filter(name="whole").update(owner=bob)
    with pytest.raises(ConflictError, match=r"it is used by 2 indexes \(of other owners\)"):
        delete_collection(fruit)


def test_error_hides_names_the_team_cannot_see(fruit: Collection) -> None:
    ada, team = User.objects.create_user("ada"), Group.objects.create(name="search")
    Collection.objects.update(owner=ada, team=team)
    fruit.refresh_from_db()
    Index.objects.create(collection=fruit, name="secret", owner=ada)
    with pytest.raises(ConflictError, match=r"used by one index hidden from the team\. Delete"):
        delete_collection(fruit)
    Index.objects.update(team=team)
    with pytest.raises(ConflictError, match=r'used by the index "secret"'):
        delete_collection(fruit)
