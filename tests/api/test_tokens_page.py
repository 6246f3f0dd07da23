"""The tokens of a user, in the admin."""

import re
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts.models import AccessToken
from apps.accounts.tokens import issue_token
from benchbench.site.panels import change_url, changelist_url
from tests.admin.conftest import MakeStaff
from tests.api.test_base import bearer

ADD = "/admin/accounts/accesstoken/add/"


@pytest.fixture
def ada(make_staff: MakeStaff) -> User:
    return make_staff("ada", may=())


@pytest.fixture
def client_of_ada(ada: User, client: Client) -> Client:
    client.force_login(ada)
    return client


def test_it_shows_the_secret_of_a_new_token_once(client_of_ada: Client, ada: User) -> None:
    page = client_of_ada.post(ADD, {"name": "nightly", "scope": "read", "days": "30"})
    secret = re.search(r'value="(bb_[\w-]+)"', page.content.decode())
    assert secret is not None
    assert "no-store" in page["Cache-Control"]
    token = AccessToken.objects.get()
    assert (token.user, token.scope, token.state) == (ada, "read", "active")
    assert token.expires_at is not None
    assert bearer(secret[1]).get("/api/v2/schema").status_code == 200
    for page in (client_of_ada.get(change_url(token)), client_of_ada.get(changelist_url(AccessToken))):
        assert page.status_code == 200
        assert secret[1] not in page.content.decode()


def test_a_name_is_taken_until_its_token_is_revoked(client_of_ada: Client, ada: User) -> None:
    stated = {"name": "nightly", "scope": "read", "days": ""}
    client_of_ada.post(ADD, stated)
    assert "You have a token called" in client_of_ada.post(ADD, stated).content.decode()
    token = AccessToken.objects.get()
    assert token.expires_at is None
    revoke = {"action": "revoke_selected", "_selected_action": str(token.pk)}
    told = client_of_ada.post(changelist_url(AccessToken), revoke, follow=True)
    assert "is revoked" in told.content.decode()
    client_of_ada.post(ADD, stated)
    assert [token.state for token in AccessToken.objects.all()] == ["active", "revoked"]


def test_each_sees_their_own_and_a_superuser_all(
    client_of_ada: Client, make_staff: MakeStaff, admin_client: Client
) -> None:
    token, _ = issue_token(make_staff("grace"), name="of grace")
    revoke = {"action": "revoke_selected", "_selected_action": str(token.pk)}
    assert client_of_ada.get(change_url(token)).status_code in (302, 404)
    client_of_ada.post(changelist_url(AccessToken), revoke)
    token.refresh_from_db()
    assert token.state == "active"
    assert "of grace" in admin_client.get(changelist_url(AccessToken)).content.decode()
    admin_client.post(changelist_url(AccessToken), revoke)
    token.refresh_from_db()
    assert token.state == "revoked"


def test_a_new_password_ends_every_token(ada: User, client: Client, make_staff: MakeStaff) -> None:
    grace = make_staff("grace")
    ada.set_password("the first")
    ada.save()
    tokens = [issue_token(ada, name=name)[1] for name in ("one", "two")] + [issue_token(grace, name="hers")[1]]
    ada.first_name = "Ada"
    ada.save()
    assert client.login(username="ada", password="the first")
    assert [bearer(token).get("/api/v2/schema").status_code for token in tokens] == [200, 200, 200]
    ada.set_password("the second")
    ada.save()
    assert [bearer(token).get("/api/v2/schema").status_code for token in tokens] == [401, 401, 200]
    assert {token.state for token in AccessToken.objects.filter(user=ada)} == {"revoked"}
    _, secret = issue_token(ada, name="one")
    ada.set_unusable_password()
    ada.save()
    assert bearer(secret).get("/api/v2/schema").status_code == 401


def test_a_password_that_is_hashed_anew_ends_no_token(ada: User, client: Client, settings: Any) -> None:
    """As at a sign-in after Django's hasher changed."""
    ada.password = make_password("hers", hasher="md5")
    ada.save()
    _, secret = issue_token(ada, name="ci")
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    assert client.login(username="ada", password="hers")
    ada.refresh_from_db()
    assert ada.password.startswith("pbkdf2")
    assert bearer(secret).get("/api/v2/schema").status_code == 200
