import json
import uuid
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection

from apps.operations.launching import start_operation
from apps.operations.models import Operation
from apps.operations.working import wait
from tests.operations.conftest import Adding

pytestmark = pytest.mark.django_db(transaction=True)


def start(owner: User | None = None) -> Operation:
    return start_operation(
        Operation.Kind.IMPORT, subject_id=uuid.uuid4(), owner=owner, batches=[({"number": 1}, 1), ({"number": 2}, 1)]
    )


def socket(path: str, user: Any, origin: bytes = b"http://localhost:8000") -> WebsocketCommunicator:
    from channels.routing import URLRouter

    from apps.operations.routing import websocket_urlpatterns

    communicator = WebsocketCommunicator(URLRouter(websocket_urlpatterns), path, headers=[(b"origin", origin)])
    communicator.scope["user"] = user
    return communicator


def work(operation: Operation) -> None:
    wait(operation)
    connection.close()  # this thread's own


async def close_code(communicator: WebsocketCommunicator) -> int:
    await communicator.connect()
    closed = await communicator.receive_output(timeout=5)
    assert closed["type"] == "websocket.close"
    return int(closed["code"])


@pytest.fixture
def staff() -> User:
    return User.objects.create_user("ada", is_staff=True)


@pytest.mark.parametrize("slash", ["", "/"])
def test_it_tells_the_whole_state_on_connect_then_each_move_to_the_end(
    handler: Adding, staff: User, slash: str
) -> None:
    operation = start(staff)

    async def watch() -> list[dict[str, Any]]:
        communicator = socket(f"/ws/operations/{operation.pk}{slash}", staff)
        connected, _ = await communicator.connect()
        assert connected
        messages = [await communicator.receive_json_from(timeout=5)]
        await sync_to_async(work, thread_sensitive=False)(operation)
        while messages[-1]["data"].get("status") != "completed":
            messages.append(await communicator.receive_json_from(timeout=5))
        await communicator.disconnect()
        return messages

    first, *_, last = async_to_sync(watch)()
    assert first["type"] == "current_state"
    assert first["data"]["operation_id"] == str(operation.pk)
    assert first["data"]["progress"]["sum"] == 0
    assert (last["type"], last["data"]["sum"]) == ("adding_progress", 3)
    assert set(last) == {"timestamp", "type", "data"}


def test_it_answers_ping(handler: Adding, staff: User) -> None:
    async def ping() -> Any:
        communicator = socket("/ws/operations/", staff)
        await communicator.connect()
        await communicator.receive_json_from(timeout=5)
        await communicator.send_to(text_data=json.dumps({"type": "ping"}))
        answer = await communicator.receive_json_from(timeout=5)
        await communicator.disconnect()
        return answer

    assert async_to_sync(ping)() == {"type": "pong"}


def test_it_lists_the_user_s_active_operations(handler: Adding, staff: User) -> None:
    mine, other = start(staff), start(User.objects.create_user("bob", is_staff=True))

    async def connect() -> Any:
        communicator = socket("/ws/operations/", staff)
        await communicator.connect()
        answer = await communicator.receive_json_from(timeout=5)
        await communicator.disconnect()
        return answer

    ids = [state["operation_id"] for state in async_to_sync(connect)()["data"]["operations"]]
    assert ids == [str(mine.pk)]
    assert str(other.pk) not in ids


def test_it_refuses_whoever_is_not_staff_and_other_people_s_operations(handler: Adding, staff: User) -> None:
    visitor = User.objects.create_user("eve")
    path = f"/ws/operations/{start(staff).pk}/"
    stranger = User.objects.create_user("bob", is_staff=True)
    codes = [async_to_sync(close_code)(socket(path, user)) for user in (AnonymousUser(), visitor, stranger)]
    assert codes == [1008, 1008, 1008]


def test_it_refuses_a_page_of_another_site(handler: Adding, staff: User) -> None:
    assert async_to_sync(close_code)(socket("/ws/operations/", staff, origin=b"https://evil.example")) == 4003
