import pytest

from apps.benchmarks.models import Benchmark
from apps.collections.models import Collection
from apps.datasets.models import Dataset, Judgment
from apps.mappings.creating import MappingExistsError, create_mapping, delete_dataset, delete_mapping, mapping_of
from apps.mappings.models import Mapping, Resolution
from apps.mappings.resolving import resolve
from benchbench.errors import ConflictError
from tests.factories import make_collection, make_dataset

pytestmark = pytest.mark.django_db


def test_it_is_called_after_dataset_and_collection(admin_user):
    mapping = create_mapping(make_dataset(), make_collection(), owner=admin_user)
    assert (mapping.name, mapping.owner, mapping.status) == ("questions on library", admin_user, "pending")


def test_a_name_that_nobody_stated_is_one_that_is_free(admin_user):
    """Two of one name by length, by wording, and by whose they are."""
    long, docs = make_dataset(name="q" * 200), make_collection()
    first, second = (create_mapping(long, make_collection("c" * 199 + end)) for end in "12")
    assert (first.name, second.name) == ("q" * 200, "q" * 196 + " (2)")
    create_mapping(make_dataset(name="x on y"), make_collection("z"))
    assert create_mapping(make_dataset(name="x"), make_collection("y on z")).name == "x on y on z (2)"
    shared = make_dataset(name="adi")
    mine = Dataset.objects.create(name="adi", owner=admin_user)
    names = [create_mapping(dataset, docs, owner=admin_user).name for dataset in (shared, mine)]
    assert names == ["adi on library", "adi on library (2)"]


def test_it_refuses_a_second_mapping_of_the_same_two():
    dataset, collection = make_dataset(), make_collection()
    create_mapping(dataset, collection, name="first")
    with pytest.raises(MappingExistsError, match='by the mapping "first": resolve that one again'):
        create_mapping(dataset, collection, name="second")
    assert Mapping.objects.count() == 1


def test_a_private_mapping_is_in_nobody_else_s_way(django_user_model):
    """It is neither taken for another, nor told of; what the whole staff sees is the same for all."""
    alice, bob = (django_user_model.objects.create_user(name, is_staff=True) for name in ("alice", "bob"))
    dataset, collection = make_dataset(), make_collection()
    his = create_mapping(dataset, collection, owner=bob)
    assert mapping_of(dataset, collection, owner=alice) is None
    hers = create_mapping(dataset, collection, owner=alice)
    assert (hers.name, mapping_of(dataset, collection, owner=alice)) == (his.name, hers)
    assert mapping_of(dataset, collection) == his, "a command that names no owner finds everybody's"
    shared = create_mapping(dataset, collection)
    assert mapping_of(dataset, collection) == shared
    with pytest.raises(MappingExistsError, match="resolve that one again"):
        create_mapping(dataset, collection)
    hers.delete()
    assert mapping_of(dataset, collection, owner=alice) == shared
    with pytest.raises(MappingExistsError, match="resolve that one again"):
        create_mapping(dataset, collection, owner=alice)


def test_it_refuses_a_name_that_its_owner_uses_already(admin_user):
    collection = make_collection()
    create_mapping(make_dataset(name="one"), collection, name="mine")
    create_mapping(make_dataset(name="two"), collection, name="mine", owner=admin_user)
    with pytest.raises(MappingExistsError, match='A mapping "mine" exists already'):
        create_mapping(make_dataset(name="three"), collection, name="mine")


def test_it_deletes_a_mapping_with_its_resolutions():
    mapping = create_mapping(make_dataset({"q1": [({"document_id": "d1"}, 1)]}), make_collection(documents=[{}]))
    resolve(mapping)
    delete_mapping(mapping)
    assert not Mapping.objects.exists()
    assert not Resolution.objects.exists()


def test_it_does_not_delete_what_benchmarks_use():
    mapping = create_mapping(make_dataset(), make_collection())
    version = mapping.dataset.versions.get()
    Benchmark.objects.create(name="nightly", mapping=mapping, dataset_version=version, matrix={})
    with pytest.raises(ConflictError, match='used by the benchmark "nightly"'):
        delete_mapping(mapping)
    assert Mapping.objects.exists()


def test_it_does_not_delete_what_is_being_resolved(settings):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_DOCS = 0
    mapping = resolve(create_mapping(make_dataset(), make_collection(documents=[{}]))).mapping
    with pytest.raises(ConflictError, match="used by the operation"):
        delete_mapping(mapping)


def test_it_deletes_a_dataset_with_its_versions_and_mappings():
    dataset = make_dataset({"q1": [({"document_id": "d1"}, 1)]})
    for name in ("shelf", "library"):
        resolve(create_mapping(dataset, make_collection(name, documents=[{}])))
    delete_dataset(dataset)
    assert not any(model.objects.exists() for model in (Dataset, Judgment, Mapping, Resolution))
    assert Collection.objects.count() == 2


def test_it_does_not_delete_a_dataset_that_has_results():
    dataset = make_dataset()
    for name in ("shelf", "library"):
        mapping = create_mapping(dataset, make_collection(name))
    Benchmark.objects.create(name="nightly", mapping=mapping, dataset_version=dataset.versions.get(), matrix={})
    with pytest.raises(ConflictError, match=r'The dataset "questions" cannot be .* used by the benchmark "nightly"'):
        delete_dataset(dataset)
    assert (Dataset.objects.count(), Mapping.objects.count()) == (1, 2)
