import threading
import time
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator

from apps.operations import events
from apps.operations.launching import cancel_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.operations.watched import ALL, aside, path_of, start
from tests.sockets import closed, in_loop, make_watcher, watching

pytestmark = pytest.mark.django_db(transaction=True)
begin = sync_to_async(start)


async def until(communicator: WebsocketCommunicator, status: str) -> dict[str, Any]:
    """Read on to the event that says so."""
    while (message := await communicator.receive_json_from(timeout=60))["data"].get("status") != status:
        pass
    assert isinstance(message, dict)
    return message


async def read_all(communicator: WebsocketCommunicator, seconds: float) -> list[Any]:
    """Read until nothing comes for so long."""
    messages = []
    while not await communicator.receive_nothing(timeout=seconds):
        messages.append(await communicator.receive_json_from())
    return messages


class TestTelling:
    @pytest.mark.parametrize("slash", ["", "/"])
    @in_loop
    async def test_socket_sends_full_state_then_each_change(self, handler, staff, slash):
        operation = await begin(staff)
        async with watching(path_of(operation) + slash, staff) as (watcher, first):
            await aside(wait, operation)
            last = await until(watcher, "completed")
        assert first["type"] == "current_state"
        assert first["data"]["operation_id"] == str(operation.pk)
        assert first["data"]["progress"]["sum"] == 0
        assert (last["type"], last["data"]["sum"]) == ("adding_progress", 3)
        assert set(last) == {"timestamp", "type", "data"}

    @pytest.mark.parametrize("slash", ["", "/"])
    @in_loop
    async def test_socket_sends_only_the_users_own_operations(self, handler, staff, slash):
        mine, second = await begin(staff), await begin(await sync_to_async(make_watcher)("bob"))
        async with watching(ALL + slash, staff) as (watcher, first):
            await aside(wait, second)
            await aside(wait, mine)
            last = await until(watcher, "completed")
            await aside(cancel_operation, await begin(staff))
            new = await until(watcher, "cancelled")
        assert [state["operation_id"] for state in first["data"]["operations"]] == [str(mine.pk)]
        assert first["data"]["total"] == 1
        assert last["data"]["operation_id"] == str(mine.pk)
        assert new["data"]["operation_id"] not in (str(mine.pk), str(second.pk))

    @in_loop
    async def test_hint_socket_sends_only_that_an_operation_changed(self, handler, staff):
        operation = await begin(staff)
        async with watching(f"{path_of(operation)}/hints", staff) as (watcher, first):
            await aside(wait, operation)
            messages = [first, await watcher.receive_json_from(timeout=60), *await read_all(watcher, 0.5)]
        assert {(message["type"], *message["data"].items()) for message in messages} == {
            ("moved", ("operation_id", str(operation.pk)))
        }

    @in_loop
    async def test_socket_detects_changes_without_hints(self, handler, staff, impatient, monkeypatch):
        monkeypatch.setattr(events, "publish", lambda *_, **__: None)
        recognised, ended = await begin(staff), await begin(staff)
        await aside(wait, ended)
        async with watching(path_of(recognised), staff) as (one, _), watching(ALL, staff) as (every, _):
            await aside(wait, recognised)
            for watcher in (one, every):
                assert (await until(watcher, "completed"))["data"]["operation_id"] == str(recognised.pk)
            later = await begin(staff)
            await aside(wait, later)  # begun and ended between two looks
            assert (await until(every, "completed"))["data"]["operation_id"] == str(later.pk)
            assert await every.receive_nothing(timeout=0.5), "an end is told once"

    @in_loop
    async def test_hints_are_coalesced(self, handler, staff, monkeypatch):
        operation, all_sent = await begin(staff), threading.Event()
        event = handler.build_event

        def slow(operation: Operation) -> Any:
            all_sent.wait(60)
            time.sleep(0.2)
            return event(operation)

        async with watching(path_of(operation), staff) as (watcher, _):
            monkeypatch.setattr(handler, "build_event", slow)
            for _ in range(20):
                await events._send({"type": events.HINT, "operation": str(operation.pk)})
            all_sent.set()
            first = await watcher.receive_json_from(timeout=60)
            assert len([first, *await read_all(watcher, 1)]) < 20

    @in_loop
    async def test_socket_answers_pings_and_rejects_other_messages(self, handler, staff):
        answers = []
        async with watching(ALL, staff) as (watcher, _):
            for message in ('{"type": "ping"}', '{"type": "stop"}', "[]", "ping", '{"type":', "[" * 2000, b"\xff\x00"):
                await watcher.send_to(**{"bytes_data" if isinstance(message, bytes) else "text_data": message})
                answers.append(await watcher.receive_json_from(timeout=60))
        pong, *errors = answers
        assert pong == {"type": "pong"}
        assert [error["data"]["code"] for error in errors] == ["unknown_message"] * 6

    @in_loop
    async def test_an_error_closes(self, handler, staff, impatient, monkeypatch):
        def broken(_: object) -> None:
            raise OSError("The database is away.")

        async with watching(path_of(await begin(staff)), staff) as (watcher, _):
            monkeypatch.setattr(handler, "build_event", broken)
            assert await closed(watcher) == ("", 1011)
