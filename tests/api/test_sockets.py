"""Tokens on a WebSocket; sessions are tested with the consumers."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework_simplejwt.tokens import AccessToken

from apps.accounts.models import AccessToken as PersonalToken
from apps.accounts.tokens import issue_token, open_sign_in, revoke_token
from apps.operations import consumers
from tests.sockets import closed, make_watcher, opened, refused, socket

pytestmark = pytest.mark.django_db(transaction=True)
ALL = "/ws/operations"


@pytest.fixture
def ada() -> User:
    return make_watcher("ada")


def jwt(user: User, **lifetime: float) -> str:
    token = open_sign_in(user).access_token
    if lifetime:
        token.set_exp(lifetime=timedelta(**lifetime))
    return str(token)


def personal(user: User) -> str:
    return issue_token(user, name="watching")[1]


@pytest.mark.parametrize("make", [jwt, personal])
def test_a_token_admits_its_user_and_is_echoed(ada: User, make: Callable[[User], str]) -> None:
    token = make(ada)
    watcher = socket(ALL, token=token, origin=None)

    async def connect() -> object:
        chosen = (await watcher.connect(timeout=60))[1]
        first = await watcher.receive_json_from(timeout=60)
        await watcher.disconnect()
        return chosen, first["type"]

    assert async_to_sync(connect)() == (f"access_token.{token}", "current_state")


def test_invalid_token_is_refused_even_with_a_session(ada: User) -> None:
    another_day = make_watcher("bob")
    revoked = personal(another_day)
    revoke_token(PersonalToken.objects.get())
    past = jwt(another_day)
    another_day.set_password("another")
    another_day.save()
    bad = [jwt(ada, seconds=-1), str(open_sign_in(ada)), str(AccessToken.for_user(ada)), jwt(ada)[:-2]]
    bad += ["", "bb_unknown", revoked, past]
    assert {async_to_sync(refused)(socket(ALL, ada, token=token)) for token in bad} == {("not_authenticated", 1008)}
    former = make_watcher("max", is_active=False)
    assert async_to_sync(refused)(socket(ALL, token=jwt(former))) == ("not_authenticated", 1008)
    visitor = make_watcher("eve", is_staff=False)
    assert async_to_sync(refused)(socket(ALL, token=jwt(visitor))) == ("permission_denied", 1008)


def test_foreign_page_needs_a_trusted_origin_despite_a_token(ada: User, settings: object) -> None:
    elsewhere = "https://dashboard.example.org"
    assert async_to_sync(refused)(socket(ALL, token=jwt(ada), origin=elsewhere)) == ("origin", 4003)
    settings.CSRF_TRUSTED_ORIGINS = [elsewhere]  # type: ignore[attr-defined]
    assert async_to_sync(opened)(socket(ALL, token=jwt(ada), origin=elsewhere))["type"] == "current_state"


def test_expiring_jwt_closes_the_socket_immediately(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_SECONDS", 3600)  # so that nothing but that moment ends it
    watcher = socket(ALL, token=jwt(ada, seconds=5))

    async def watch() -> tuple[str, int]:
        await opened(watcher)
        return await closed(watcher)

    assert async_to_sync(watch)() == ("not_authenticated", 1008)


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
def test_a_personal_token_that_ends_closes_the_socket(ada: User, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    monkeypatch.setattr(consumers, "LOOK_SECONDS", 0.2)
    watcher = socket(ALL, token=personal(ada))

    async def watch() -> tuple[str, int]:
        await opened(watcher)
        await sync_to_async(PersonalToken.objects.update)(**{end: timezone.now()})
        return await closed(watcher)

    assert async_to_sync(watch)() == ("not_authenticated", 1008)


def test_where_authentication_is_off_everybody_is_the_one_user(ada: User, settings: object) -> None:
    settings.DISABLE_AUTH, settings.DISABLE_AUTH_USER = True, "ada"  # type: ignore[attr-defined]
    for watcher in (socket(ALL), socket(ALL, token="bb_of-yesterday")):
        assert async_to_sync(opened)(watcher)["type"] == "current_state"
