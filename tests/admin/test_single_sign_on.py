"""Single sign-on: who enters with which account, the way through a provider, and nothing of it where it is off."""

import sys
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from apps.accounts.single_sign_on import Person, SignInRefusedError, admit, read_person
from apps.accounts.throttling import uncount
from benchbench.site.presets import build_provider
from tests.admin.oidc_provider import Provider, serve_site
from tests.pages import one_line

ADA = {"sub": "1", "email": "Ada@bench.example", "email_verified": True, "given_name": "Ada"}
USERS = [
    {"username": "ada", "email": "ada@bench.example", "is_staff": True, "is_superuser": True},
    {"username": "away", "email": "away@bench.example", "is_staff": True, "is_active": False},
]


@pytest.fixture
def rules(settings: Any) -> Any:
    settings.BENCHBENCH_OIDC_DOMAINS = ["bench.example"]
    return settings


def refusal(person: Person, linked: User | None = None) -> str:
    with pytest.raises(SignInRefusedError) as caught:
        admit(person, linked)
    return caught.value.message


def test_only_confirmed_addresses_count(rules):
    assert read_person({"sub": "1"}, ADA).email == "ada@bench.example"
    for claims in ({"email_verified": False}, {"email_verified": "no"}, {"email": "ſam@bench.example"}, {"email": 1}):
        assert read_person({"sub": "1"}, ADA | claims).email == ""
    unsaid = {name: value for name, value in ADA.items() if name != "email_verified"}
    assert read_person(unsaid, {}).email == ""
    rules.BENCHBENCH_OIDC_TRUST_EMAIL = True
    assert read_person(unsaid, {}).email == "ada@bench.example"
    assert read_person(ADA | {"email_verified": False}, {}).email == ""
    with pytest.raises(SignInRefusedError):
        read_person({"sub": "2"}, ADA)


def test_unknown_people_are_refused_by_default(db):
    assert "ask an administrator" in refusal(Person("eve@bench.example", frozenset()))
    assert "does not confirm" in refusal(Person("", frozenset()))
    assert not User.objects.exists()


def test_known_staff_enter_by_their_address(db):
    ada = User.objects.create_user("ada", "ADA@bench.example", is_staff=True)
    assert admit(Person("ada@bench.example", frozenset()), None) == ada
    User.objects.create_user("other", "ada@bench.example", is_staff=True)
    assert "Several accounts" in refusal(Person("ada@bench.example", frozenset()))
    assert admit(Person("", frozenset()), ada) == ada, "linked by its subject"
    for field in ("is_staff", "is_active"):
        setattr(ada, field, False)
        assert "not active staff" in refusal(Person("ada@bench.example", frozenset()), ada)


def test_people_of_the_domain_become_viewers(roles, rules):
    created = admit(Person("bo@bench.example", frozenset(), "Bo", "Li"), None)
    assert (created.username, created.is_staff, created.is_superuser) == ("bo@bench.example", True, False)
    assert [group.name for group in created.groups.all()] == ["viewer"]
    assert not created.has_usable_password()
    assert LogEntry.objects.get().object_id == str(created.pk)
    for address in ("bo@elsewhere.example", "bo@sub.bench.example", "bo@bench.example.evil.example"):
        assert "No account has the address" in refusal(Person(address, frozenset()))


def test_time_at_the_provider_is_not_limited_by_counting():
    uncount("throttle:auth:192.0.2.1:0")  # its window is over


def test_groups_admit_and_bind_everybody(db, settings):
    settings.BENCHBENCH_OIDC_GROUPS = ["search"]
    ada = User.objects.create_user("ada", "ada@bench.example", is_staff=True)
    assert "none of the groups" in refusal(Person("ada@bench.example", frozenset({"sales"})), ada)
    member = read_person(ADA | {"groups": ["search", 3]}, {})
    assert admit(member, None) == ada
    assert admit(Person("new@any.example", frozenset({"search"})), None).is_staff
    settings.BENCHBENCH_OIDC_DOMAINS = ["bench.example"]
    assert "No account" in refusal(Person("newer@any.example", frozenset({"search"})))


@pytest.mark.parametrize("values", [("http://id.example", "a", "b"), ("https://id.example", "a", ""), ("id", "a", "b")])
def test_incomplete_configuration_stops_the_start(values):
    with pytest.raises(ImproperlyConfigured, match="BENCHBENCH_OIDC"):
        build_provider(*values)


def test_without_an_issuer_nothing_is_installed(db, client: Client, settings):
    page = client.get("/admin/login/").content.decode()
    assert "/sso/" not in page
    assert client.get("/sso/").status_code == 404
    assert not [name for name in (*settings.INSTALLED_APPS, *settings.MIDDLEWARE) if "allauth" in name]
    assert "allauth" not in sys.modules


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


@pytest.fixture(scope="module")
def site(provider: Provider) -> Iterator[str]:
    with serve_site(provider, USERS, BENCHBENCH_OIDC_NAME="Bench ID", BENCHBENCH_OIDC_DOMAINS="bench.example") as url:
        yield url


def enter(site: str, provider: Provider, claims: dict[str, Any], path: str = "/sso/") -> httpx.Response:
    provider.claims = claims
    with httpx.Client(base_url=site, follow_redirects=True, timeout=60) as browser:
        return browser.get(path)


def test_a_person_signs_in_at_the_provider(site, provider):
    with httpx.Client(base_url=site, follow_redirects=True, timeout=60) as browser:
        page = browser.get("/admin/auth/user/?q=ada")
        assert "Sign in with Bench ID" in one_line(page.text)
        assert "form-action 'self'" in page.headers["Content-Security-Policy"]
        link = unescape(page.text.partition('href="/sso/')[2].partition('"')[0])
        provider.claims = ADA
        response = browser.get(f"/sso/{link}")
        assert (response.url.path, response.status_code) == ("/admin/auth/user/", 200)
        assert provider.asked["redirect_uri"] == f"{site}/sso/callback/"
        assert set(provider.asked["scope"].split()) == {"openid", "profile", "email"}
        assert {"socialaccount", "emailaddress", "Social"}.isdisjoint(browser.get("/admin/").text.split())
        for path in ("accounts/login", "accounts/signup", "sso/signup", "sso/login", "admin/socialaccount/socialapp"):
            assert browser.get(f"/{path}/").status_code == 404
    moved = enter(site, provider, {"sub": "1", "email": "new@elsewhere.example", "email_verified": True})
    assert moved.url.path == "/admin/", "the subject stays linked to the account"


def test_a_new_person_sees_and_changes_nothing(site, provider):
    with httpx.Client(base_url=site, follow_redirects=True, timeout=60) as browser:
        provider.claims = {"sub": "2", "email": "bo@bench.example", "email_verified": True}
        assert browser.get("/sso/?next=https://evil.example/").url.path == "/admin/"
        assert browser.get("/admin/collections/collection/").status_code == 200
        assert browser.get("/admin/collections/collection/add/").status_code == 403
        assert browser.get("/admin/auth/user/").status_code == 403


def test_refusals_return_to_the_sign_in_page(site, provider):
    person = ADA | {"sub": "3"}
    for claims, words in (
        (person | {"email": "eve@elsewhere.example"}, "No account has the address eve@elsewhere.example"),
        (person | {"email": "away@bench.example"}, "is not active staff"),
        (person | {"email_verified": False}, "does not confirm your e-mail address"),
    ):
        answer = enter(site, provider, claims)
        assert answer.url.path == "/admin/login/"
        assert words in unescape(answer.text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        ("audience", "another client"),
        ("stated_issuer", "https://id.example"),
        ("userinfo", {"sub": "1000"}),
        ("of_token", {"exp": None}),
        ("of_token", {"exp": 0}),
        ("of_token", {"iat": None}),
        ("of_token", {"sub": None}),
        ("of_token", {"aud": ["benchbench", "another client"]}),
        ("of_token", {"azp": "another client"}),
        ("of_token", {"aud": ["benchbench", "another client"], "azp": "another client"}),
    ],
)
def test_false_answers_of_the_provider_sign_nobody_in(site, provider, monkeypatch, name, value):
    monkeypatch.setattr(provider, name, value)
    answer = enter(site, provider, ADA)
    assert answer.url.path == "/admin/login/"
    assert "try again" in answer.text


@pytest.mark.parametrize("of_token", [{"aud": ["benchbench"]}, {"aud": ["benchbench", "api"], "azp": "benchbench"}])
def test_tokens_for_several_audiences_name_this_site(site, provider, monkeypatch, of_token):
    monkeypatch.setattr(provider, "of_token", of_token)
    assert enter(site, provider, ADA | {"sub": "7"}).url.path == "/admin/"


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"sub": "8", "email": f"{'x' * 140}@bench.example"}, "is too long for a user name"),
        ({"sub": "s" * 2000}, "Signing in at the sign-in service failed"),
        ({"sub": "9", "given_name": "g" * 2000, "family_name": "nul\0"}, ""),
    ],
)
def test_long_claims_are_refused_or_cut(site, provider, claims, words):
    person = {"email": "cy@bench.example", "email_verified": True}
    answer = enter(site, provider, person | claims)
    assert answer.status_code == 200
    assert words in unescape(answer.text) if words else answer.url.path == "/admin/"


def test_a_callback_that_nobody_asked_for_is_refused(site, provider):
    for path in ("/sso/callback/", "/sso/callback/?code=c0de&state=x", "/sso/callback/?error=access_denied&state=x"):
        answer = enter(site, provider, ADA, path)
        assert answer.url.path == "/admin/login/"
        assert "Signing in at the sign-in service failed" in answer.text
