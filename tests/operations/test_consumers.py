import time
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.testing import WebsocketCommunicator

from apps.operations import events
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.operations.watched import ALL, aside, path_of, start
from tests.sockets import closed, make_watcher, opened, socket

pytestmark = pytest.mark.django_db(transaction=True)


async def until(communicator: WebsocketCommunicator, status: str) -> dict[str, Any]:
    """Read on to the event that says so."""
    while (message := await communicator.receive_json_from(timeout=60))["data"].get("status") != status:
        pass
    assert isinstance(message, dict)
    return message


class TestTelling:
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_it_tells_the_whole_state_then_each_move(self, handler, staff, slash):
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
    def test_it_tells_of_the_user_s_operations_alone(self, handler, staff, slash):
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

    def test_a_page_is_told_that_it_moved_and_no_more(self, handler, staff):
        operation = start(staff)
        watcher = socket(f"{path_of(operation)}/hints", staff)

        async def watch() -> list[Any]:
            messages = [await opened(watcher)]
            await aside(wait, operation)
            messages.append(await watcher.receive_json_from(timeout=60))
            while not await watcher.receive_nothing(timeout=0.5):
                messages.append(await watcher.receive_json_from())
            await watcher.disconnect()
            return messages

        messages = async_to_sync(watch)()
        assert {(message["type"], *message["data"].items()) for message in messages} == {
            ("moved", ("operation_id", str(operation.pk)))
        }

    def test_it_finds_by_itself_what_no_hint_told_of(self, handler, staff, impatient, monkeypatch):
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

    def test_hints_are_told_together(self, handler, staff, monkeypatch):
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

    def test_it_answers_a_ping_and_says_that_it_understands_nothing_else(self, handler, staff):
        watcher = socket(ALL, staff)

        async def talk() -> list[Any]:
            await opened(watcher)
            answers = []
            for said in ('{"type": "ping"}', '{"type": "stop"}', "[]", "ping", '{"type":', "[" * 2000):
                await watcher.send_to(text_data=said)
                answers.append(await watcher.receive_json_from(timeout=60))
            await watcher.send_to(bytes_data=b"\xff\x00")
            answers.append(await watcher.receive_json_from(timeout=60))
            await watcher.disconnect()
            return answers

        pong, *errors = async_to_sync(talk)()
        assert pong == {"type": "pong"}
        assert [error["data"]["code"] for error in errors] == ["unknown_message"] * 6

    def test_an_error_closes(self, handler, staff, impatient, monkeypatch):
        def broken(_: object) -> None:
            raise OSError("The database is away.")

        watcher = socket(path_of(start(staff)), staff)

        async def watch() -> tuple[str, int]:
            await opened(watcher)
            monkeypatch.setattr(handler, "event", broken)
            return await closed(watcher)

        assert async_to_sync(watch)() == ("", 1011)
