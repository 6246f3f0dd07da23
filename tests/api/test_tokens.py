"""Tokens: their page in the admin, and DISABLE_AUTH, which needs none, for development alone."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.models import AccessToken
from apps.accounts.tokens import issue_token
from benchbench.site.panels import build_list_url, change_url
from tests.api.bodies import DATASETS, questions
from tests.api.callers import ROOT, Caller, bearer
from tests.checkout import CHECKOUT
from tests.staff import MakeStaff

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
    for page in (client_of_ada.get(change_url(token)), client_of_ada.get(build_list_url(AccessToken))):
        assert page.status_code == 200
        assert secret[1] not in page.content.decode()


def test_a_name_is_taken_until_its_token_is_revoked(client_of_ada: Client, ada: User) -> None:
    fields = {"name": "nightly", "scope": "read", "days": ""}
    client_of_ada.post(ADD, fields)
    assert "You already have a token" in client_of_ada.post(ADD, fields).content.decode()
    token = AccessToken.objects.get()
    assert token.expires_at is None
    revoke = {"action": "revoke_selected", "_selected_action": str(token.pk)}
    response = client_of_ada.post(build_list_url(AccessToken), revoke, follow=True)
    assert "is revoked" in response.content.decode()
    client_of_ada.post(ADD, fields)
    assert [token.state for token in AccessToken.objects.all()] == ["active", "revoked"]


def test_each_sees_their_own_and_a_superuser_all(
    client_of_ada: Client, make_staff: MakeStaff, admin_client: Client
) -> None:
    token, _ = issue_token(make_staff("grace"), name="of grace")
    revoke = {"action": "revoke_selected", "_selected_action": str(token.pk)}
    assert client_of_ada.get(change_url(token)).status_code in (302, 404)
    client_of_ada.post(build_list_url(AccessToken), revoke)
    token.refresh_from_db()
    assert token.state == "active"
    assert "of grace" in admin_client.get(build_list_url(AccessToken)).content.decode()
    admin_client.post(build_list_url(AccessToken), revoke)
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


def test_rehashing_a_password_keeps_tokens_valid(ada: User, client: Client, settings: Any) -> None:
    """As at a sign-in after Django's hasher changed."""
    ada.password = make_password("hers", hasher="md5")
    ada.save()
    _, secret = issue_token(ada, name="ci")
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher", *settings.PASSWORD_HASHERS]
    assert client.login(username="ada", password="hers")
    ada.refresh_from_db()
    assert ada.password.startswith("pbkdf2")
    assert bearer(secret).get("/api/v2/schema").status_code == 200


START = "import django; django.setup()"


def start(**variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "benchbench.settings", "DISABLE_AUTH": "true"} | variables
    command = [sys.executable, "-c", START]
    return subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)


@pytest.mark.thorough
def test_it_is_refused_without_debug() -> None:
    finished = start(DEBUG="false")
    assert finished.returncode != 0
    assert "DISABLE_AUTH is true without DEBUG, so anyone can use the API as staff: unset it." in finished.stderr


@pytest.mark.thorough
def test_disabled_authentication_is_reported_at_startup(settings: Any) -> None:
    finished = start(DEBUG="true", DISABLE_AUTH_USER="ada")
    assert finished.returncode == 0, finished.stderr
    assert "DISABLE_AUTH is on: the API lets everybody in as 'ada'." in finished.stderr
    settings.DISABLE_AUTH = True
    assert "benchbench.W010" in {message.id for message in run_checks()}


@pytest.mark.thorough
def test_everybody_is_the_named_user(make_staff: MakeStaff, settings: Any) -> None:
    user = make_staff("ada")
    assert Caller().get(DATASETS).status_code == 401
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    assert Caller().upload(DATASETS, questions("a"), name="n").json()["owner_id"] == user.pk
    assert Caller(make_staff("grace")).upload(DATASETS, questions("a"), name="n").json()["owner_id"] != user.pk


@pytest.mark.thorough
@pytest.mark.parametrize("token", ["bb_of-yesterday", "eyJhbGciOiJIUzI1NiJ9.e30.x", "two words", ""])
def test_invalid_token_counts_as_no_token(make_staff: MakeStaff, settings: Any, token: str) -> None:
    user = make_staff("ada")
    requests = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    assert Client().get(ROOT + DATASETS, **requests).status_code == 401
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    assert Client().get(f"{ROOT}/operations", **requests).status_code == 200
    upload = {"name": "n", "file": SimpleUploadedFile("q.json", json.dumps(questions("a")).encode())}
    assert Client().post(ROOT + DATASETS, upload, **requests).json()["owner_id"] == user.pk
    user.is_active = False
    user.save()
    assert Client().get(ROOT + DATASETS, **requests).status_code == 401


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), ("http://testserver", 201), (None, 201)]
)
def test_a_page_of_another_site_is_not_everybody(
    make_staff: MakeStaff, settings: Any, origin: str | None, status: int
) -> None:
    make_staff("ada")
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    fields = {"name": "n", "file": SimpleUploadedFile("q.json", json.dumps(questions("a")).encode())}
    answer = Client().post(ROOT + DATASETS, fields, headers={"Origin": origin} if origin else {})
    assert answer.status_code == status, answer.content
    assert answer.json().get("code", "origin") == "origin"


@pytest.mark.thorough
@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}, {"username": "other"}])
def test_the_named_user_must_be_active_staff(make_staff: MakeStaff, settings: Any, change: dict[str, Any]) -> None:
    user = make_staff("ada")
    for name, value in change.items():
        setattr(user, name, value)
    user.save()
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"
    answer = Caller().get(DATASETS)
    assert answer.status_code == 401
    assert "no active staff user is called 'ada'" in answer.json()["detail"]
