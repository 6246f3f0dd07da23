import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.datasets.models import Query
from apps.mappings.models import Mapping
from apps.mappings.resolving import resolve
from apps.records.models import Run
from apps.retrieval.models import ChunkSet, VectorSpace
from tests.api.worlds import world
from tests.factories import add_judgment
from tests.library import make_library
from tests.rankings import add_ranking
from tests.staff import MakeStaff


@pytest.fixture
def ada(make_staff: MakeStaff) -> User:
    return make_staff("ada")


@pytest.fixture
def client_of_ada(ada: User) -> Client:
    client = Client()
    client.force_login(ada)
    return client


@pytest.fixture
def library(transactional_db: None) -> Mapping:
    return make_library(documents=12, queries=6)


@pytest.fixture
def owner(make_staff: MakeStaff) -> User:
    """Someone who owns one of everything that has an address."""
    user = make_staff("grace")
    world(user)
    run, query = Run.objects.get(), Query.objects.get()
    add_judgment(query, {"document_id": "gone"}, 2)
    resolve(run.benchmark.mapping)
    add_ranking(run, query, [run.benchmark.mapping.collection.documents.get().pk], scores=[1.0])
    ChunkSet.objects.create(collection=run.benchmark.mapping.collection, strategy="flat", fingerprint="f")
    VectorSpace.objects.create(encoder="keyword:a", revision="1", kind="query", dimension=1)
    return user
