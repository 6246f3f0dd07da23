import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection

from apps.operations import consumers, events
from apps.operations.launching import cancel_operation, start_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.operations.conftest import Adding
from tests.sockets import HOST, closed, make_watcher, opened, refused, socket

pytestmark = pytest.mark.django_db(transaction=True)
ALL = "/ws/operations"


@pytest.fixture
def staff() -> User:
    return make_watcher("ada")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "LOOK_SECONDS", 0.2)


def start(owner: User | None = None) -> Operation:
    return start_operation(
        Operation.Kind.IMPORT, subject_id=uuid.uuid4(), owner=owner, batches=[({"number": 1}, 1), ({"number": 2}, 1)]
    )


def path_of(operation: Operation) -> str:
    return f"{ALL}/{operation.pk}"


async def aside(work: Callable[..., Any], *arguments: Any) -> None:
    """Do the work in a thread, and close its connection to the database."""

    def done() -> None:
        work(*arguments)
        connection.close()

    await sync_to_async(done, thread_sensitive=False)()


async def until(communicator: WebsocketCommunicator, status: str) -> dict[str, Any]:
    """Read on to the event that says so."""
    while (message := await communicator.receive_json_from(timeout=5))["data"].get("status") != status:
        pass
    assert isinstance(message, dict)
    return message


class TestTelling:
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_it_tells_the_whole_state_of_one_on_connect_then_each_move_to_the_end(
        self, handler: Adding, staff: User, slash: str
    ) -> None:
        operation = start(staff)
        watcher = socket(path_of(operation) + slash, staff)

        async def watch() -> tuple[Any, Any]:
            first = await opened(watcher)
            await aside(wait, operation)
            last = await until(watcher, "completed")
            await watcher.disconnect()
            return first, last

        first, last = async_to_sync(watch)()
        assert first["type"] == "current_state"
        assert first["data"]["operation_id"] == str(operation.pk)
        assert first["data"]["progress"]["sum"] == 0
        assert (last["type"], last["data"]["sum"]) == ("adding_progress", 3)
        assert set(last) == {"timestamp", "type", "data"}

    @pytest.mark.parametrize("slash", ["", "/"])
    def test_it_tells_of_all_the_user_s_operations_and_of_nobody_else_s(
        self, handler: Adding, staff: User, slash: str
    ) -> None:
        mine, other = start(staff), start(make_watcher("bob"))
        watcher = socket(ALL + slash, staff)

        async def watch() -> tuple[Any, Any, Any]:
            first = await opened(watcher)
            await aside(wait, other)
            await aside(wait, mine)
            last = await until(watcher, "completed")
            await aside(cancel_operation, await sync_to_async(start)(staff))
            new = await until(watcher, "cancelled")
            await watcher.disconnect()
            return first, last, new

        first, last, new = async_to_sync(watch)()
        assert [state["operation_id"] for state in first["data"]["operations"]] == [str(mine.pk)]
        assert first["data"]["total"] == 1
        assert last["data"]["operation_id"] == str(mine.pk)
        assert new["data"]["operation_id"] not in (str(mine.pk), str(other.pk))

    def test_who_comes_after_the_end_is_told_the_end(self, handler: Adding, staff: User) -> None:
        operation = start(staff)
        wait(operation)
        watcher = socket(path_of(operation), staff)
        first = async_to_sync(opened)(watcher)
        assert (first["data"]["status"], first["data"]["progress"]["sum"]) == ("completed", 3)

    def test_it_finds_by_itself_what_no_hint_told_of(
        self, handler: Adding, staff: User, impatient: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(events, "publish", lambda *_, **__: None)
        known, ended = start(staff), start(staff)
        wait(ended)
        watchers = [socket(path, staff) for path in (path_of(known), ALL)]

        async def watch() -> list[str]:
            for watcher in watchers:
                await opened(watcher)
            await aside(wait, known)
            found = [(await until(watcher, "completed"))["data"]["operation_id"] for watcher in watchers]
            later = await sync_to_async(start)(staff)
            await aside(wait, later)  # begun and ended between two looks
            while (new := await until(watchers[1], "completed"))["data"]["operation_id"] != str(later.pk):
                found.append(new["data"]["operation_id"])
            assert await watchers[1].receive_nothing(timeout=0.5), "an end is told once"
            for watcher in watchers:
                await watcher.disconnect()
            return found

        assert async_to_sync(watch)() == [str(known.pk)] * 2

    def test_hints_that_come_while_one_is_told_are_told_together(
        self, handler: Adding, staff: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        operation = start(staff)
        watcher = socket(path_of(operation), staff)
        event = handler.event

        def slow(operation: Operation) -> Any:
            time.sleep(0.2)
            return event(operation)

        async def watch() -> int:
            await opened(watcher)
            monkeypatch.setattr(handler, "event", slow)
            for _ in range(20):
                await events._send({"type": events.HINT, "operation": str(operation.pk)})
            told = 0
            while not await watcher.receive_nothing(timeout=1):
                await watcher.receive_json_from()
                told += 1
            await watcher.disconnect()
            return told

        assert 0 < async_to_sync(watch)() < 20

    def test_it_answers_a_ping_and_says_that_it_understands_nothing_else(self, handler: Adding, staff: User) -> None:
        watcher = socket(ALL, staff)

        async def talk() -> list[Any]:
            await opened(watcher)
            answers = []
            for said in ('{"type": "ping"}', '{"type": "stop"}', "[]", "ping", '{"type":'):
                await watcher.send_to(text_data=said)
                answers.append(await watcher.receive_json_from(timeout=5))
            await watcher.send_to(bytes_data=b"\xff\x00")
            answers.append(await watcher.receive_json_from(timeout=5))
            await watcher.disconnect()
            return answers

        pong, *errors = async_to_sync(talk)()
        assert pong == {"type": "pong"}
        assert [error["data"]["code"] for error in errors] == ["unknown_message"] * 5

    def test_an_error_of_the_server_closes_the_socket_so_that_the_client_connects_again(
        self, handler: Adding, staff: User, impatient: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(_: object) -> None:
            raise OSError("The database is away.")

        watcher = socket(path_of(start(staff)), staff)

        async def watch() -> tuple[str, int]:
            await opened(watcher)
            monkeypatch.setattr(handler, "event", broken)
            return await closed(watcher)

        assert async_to_sync(watch)() == ("", 1011)


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

    @pytest.mark.parametrize("path", ["/ws/operations/1", "/ws/other", "/ws/operations//"])
    def test_any_other_address_is_answered_and_closed(self, staff: User, path: str) -> None:
        assert async_to_sync(refused)(socket(path, staff)) == ("not_found", 1008)

    @pytest.mark.parametrize(
        "origin",
        ["https://evil.example", "http://localhost:3000", f"https://{HOST}", f"http://evil.{HOST}", "null", "x"],
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

    @pytest.mark.parametrize("loss", ["session", "staff", "permission", "password", "operation"])
    def test_who_loses_the_right_to_watch_loses_the_socket(
        self, handler: Adding, staff: User, impatient: None, loss: str
    ) -> None:
        operation = start(staff)
        watcher = socket(path_of(operation), staff)

        def lose() -> None:
            if loss == "session":
                Session.objects.all().delete()
            elif loss == "staff":
                User.objects.filter(pk=staff.pk).update(is_staff=False)
            elif loss == "permission":
                staff.user_permissions.clear()
            elif loss == "password":
                staff.set_password("another")
                staff.save()
            else:
                Operation.objects.filter(pk=operation.pk).update(owner=User.objects.create_user("bob"))

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
        monkeypatch.setattr(consumers._Watcher, "places", consumers.Places())
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
        consumers.take_place(staff.pk, "of a process that died")
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
