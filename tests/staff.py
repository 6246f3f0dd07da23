"""Staff members with permissions."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User

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
