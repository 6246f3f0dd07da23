"""Who may watch operations, from where, and how many at once."""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from apps.collections.models import Collection
from apps.operations import admission, consumers
from tests.operations.conftest import Adding
from tests.operations.documented import PAGE
from tests.operations.watched import ALL, aside, path_of, start
from tests.sockets import HOST, closed, make_watcher, opened, refused, socket

pytestmark = pytest.mark.django_db(transaction=True)


class TestAdmission:
    def test_it_refuses_whoever_may_not_view_the_operation(self, handler: Adding, staff: User) -> None:
        path = path_of(start(staff))
        visitor = make_watcher("eve", is_staff=False)
        without = User.objects.create_user("kim", is_staff=True)
        former = make_watcher("max", is_active=False)
        stranger = make_watcher("bob")
        found = [async_to_sync(refused)(socket(path, user)) for user in (None, visitor, without, former, stranger)]
        assert found == [
            ("not_authenticated", 1008),
            ("permission_denied", 1008),
            ("permission_denied", 1008),
            ("not_authenticated", 1008),
            ("not_found", 1008),
        ]
        assert async_to_sync(refused)(socket(ALL)) == ("not_authenticated", 1008)
        assert async_to_sync(refused)(socket(f"{ALL}/{uuid.uuid4()}", staff)) == ("not_found", 1008)

    def test_the_id_may_stand_in_upper_case(self, handler: Adding, staff: User) -> None:
        operation = start(staff)
        watcher = socket(f"{ALL}/{str(operation.pk).upper()}", staff)

        async def first() -> Any:
            await watcher.connect(timeout=60)
            message = await watcher.receive_json_from(timeout=60)
            await watcher.disconnect()
            return message

        message = async_to_sync(first)()
        assert (message["type"], message["data"]["operation_id"]) == ("current_state", str(operation.pk))

    @pytest.mark.parametrize("path", ["/ws/operations/1", "/ws/other", "/ws/operations//"])
    def test_any_other_address_is_answered_and_closed(self, staff: User, path: str) -> None:
        assert async_to_sync(refused)(socket(path, staff)) == ("not_found", 1008)

    @pytest.mark.parametrize(
        "origin",
        [
            "https://evil.example",
            "http://localhost:3000",
            f"https://{HOST}",
            f"http://evil.{HOST}",
            "null",
            "x",
            "http://[",
        ],
    )
    def test_it_refuses_a_page_of_another_site(self, handler: Adding, staff: User, origin: str) -> None:
        assert async_to_sync(refused)(socket(ALL, staff, origin=origin)) == ("origin", 4003)

    @pytest.mark.parametrize("origin", [f"http://{HOST}", None, "https://bench.example.org", "https://a.example.net"])
    def test_it_admits_its_own_pages_trusted_ones_and_what_is_no_browser(
        self, handler: Adding, staff: User, settings: Any, origin: str | None
    ) -> None:
        settings.CSRF_TRUSTED_ORIGINS = ["https://bench.example.org", "https://*.example.net"]
        assert async_to_sync(opened)(socket(ALL, staff, origin=origin))["type"] == "current_state"

    def test_behind_https_its_own_pages_are_those_of_https(self, handler: Adding, staff: User, settings: Any) -> None:
        settings.HTTPS = True
        assert async_to_sync(opened)(socket(ALL, staff, origin=f"https://{HOST}"))["type"] == "current_state"
        assert async_to_sync(refused)(socket(ALL, staff)) == ("origin", 4003)

    @pytest.mark.parametrize("loss", ["session", "active", "staff", "permission", "password", "operation"])
    def test_who_loses_the_right_to_watch_loses_the_socket(
        self, handler: Adding, staff: User, impatient: None, loss: str
    ) -> None:
        operation = start(staff)
        watcher = socket(path_of(operation), staff)

        def lose() -> None:
            if loss == "session":
                Session.objects.all().delete()
            elif loss in ("active", "staff"):
                User.objects.filter(pk=staff.pk).update(**{f"is_{loss}": False})
            elif loss == "permission":
                staff.user_permissions.clear()
            elif loss == "password":
                staff.set_password("another")
                staff.save()
            else:
                Collection.objects.filter(pk=operation.subject_id).update(owner=User.objects.create_user("bob"))

        async def watch() -> tuple[str, int]:
            await opened(watcher)
            await aside(lose)
            return await closed(watcher)

        reason = {"staff": "permission_denied", "permission": "permission_denied", "operation": "not_found"}
        assert async_to_sync(watch)() == (reason.get(loss, "not_authenticated"), 1008)


class TestLimits:
    def test_a_user_may_hold_so_many_sockets_open(
        self, handler: Adding, staff: User, settings: Any, impatient: None
    ) -> None:
        settings.BENCHBENCH_SOCKETS_PER_USER = 2
        first, second, third, fourth = (socket(ALL, staff) for _ in range(4))
        other = socket(ALL, make_watcher("bob"))

        async def crowd() -> tuple[str, int]:
            await opened(first)
            await opened(second)
            found = await refused(third)
            await opened(other)
            assert await first.receive_nothing(timeout=0.5), "those that are open stay open"
            await second.disconnect()
            await opened(fourth)
            return found

        assert async_to_sync(crowd)() == ("too_many_sockets", 1008)

    def test_a_process_may_hold_so_many_sockets_open(
        self, handler: Adding, staff: User, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(consumers._Watcher, "open_here", set())
        settings.BENCHBENCH_SOCKETS_PER_PROCESS = 1
        first, second, third = (socket(ALL, staff) for _ in range(3))

        async def crowd() -> tuple[str, int]:
            await opened(first)
            found = await refused(second)
            await first.disconnect()
            await opened(third)
            return found

        assert async_to_sync(crowd)() == ("busy", 1008)

    def test_a_place_of_a_process_that_died_is_free_after_a_while(
        self, handler: Adding, staff: User, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.BENCHBENCH_SOCKETS_PER_USER = 1
        admission.take_place(staff.pk, "of a process that died")
        assert async_to_sync(refused)(socket(ALL, staff)) == ("too_many_sockets", 1008)
        monkeypatch.setattr("apps.operations.admission.KEEP_SECONDS", 0)
        assert async_to_sync(opened)(socket(ALL, staff))["type"] == "current_state"

    @pytest.mark.parametrize(
        ("messages", "code"),
        [([json.dumps({"type": "ping", "with": "ü" * 20})], "message_too_long"), (["{}"] * 4, "too_many_messages")],
    )
    def test_a_client_may_say_so_much(
        self, handler: Adding, staff: User, settings: Any, messages: list[str], code: str
    ) -> None:
        settings.BENCHBENCH_SOCKET_MAX_BYTES, settings.BENCHBENCH_SOCKET_MESSAGES_PER_MINUTE = 50, 3
        watcher = socket(ALL, staff)

        async def talk() -> tuple[str, int]:
            await opened(watcher)
            for message in messages:
                await watcher.send_to(text_data=message)
            return await closed(watcher)

        assert async_to_sync(talk)() == (code, 1008)


def test_every_code_of_a_refusal_is_documented() -> None:
    room = Path(consumers.__file__).parent
    code = "".join((room / name).read_text() for name in ("admission.py", "consumers.py"))
    sent = set(re.findall(r'RefusedError\(\s*"(\w+)"|"code": "(\w+)"|"error", \{"code": "(\w+)"', code))
    codes = {name for names in sent for name in names if name}
    assert {"origin", "busy", "too_many_sockets", "unknown_message", "not_found"} <= codes
    assert codes <= set(re.findall(r"`(\w+)`", PAGE.partition("## Close codes")[2]))
