from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from apps.mappings.models import Mapping
from tests.benchmarks.conftest import make_library

APPS = ("operations", "collections", "retrieval", "datasets", "mappings", "benchmarks", "judging")
MakeStaff = Callable[..., User]


@pytest.fixture
def make_staff(db: None) -> MakeStaff:
    """Make staff members that may do everything to what they see, but do not see what others own; or `may` less."""

    def make(name: str, *, may: tuple[str, ...] = ("add", "change", "delete", "view")) -> User:
        user = User.objects.create_user(name, is_staff=True)
        permissions = Permission.objects.filter(content_type__app_label__in=APPS).exclude(
            codename__startswith="view_all"
        )
        user.user_permissions.set([one for one in permissions if one.codename.split("_")[0] in may])
        return user

    return make


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
