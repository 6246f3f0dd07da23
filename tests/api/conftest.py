"""Those who ask the API: each with a token, as a program has one."""

import pytest
from django.contrib.auth.models import Permission, User

from tests.admin.conftest import MakeStaff, make_staff  # noqa: F401 (a fixture)
from tests.api.callers import VIEW_ALL, Caller, Callers


@pytest.fixture
def callers(make_staff: MakeStaff) -> Callers:  # noqa: F811
    """Everybody of the isolation matrix. What `owner` makes is what the others ask for."""
    owner, other, overseer = (make_staff(name) for name in ("owner", "other", "overseer"))
    overseer.user_permissions.add(*Permission.objects.filter(codename__startswith=VIEW_ALL))
    return Callers(
        anonymous=Caller(),
        owner=Caller(owner),
        other=Caller(other),
        overseer=Caller(overseer),
        idle=Caller(make_staff("idle", may=())),
        reader=Caller(owner, scope="read"),
        visitor=Caller(User.objects.create_user("visitor")),
    )
