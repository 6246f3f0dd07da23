"""WebSockets on which staff watch operations. Each message says what the database says at that moment."""

import asyncio
import contextlib
from typing import Any
from urllib.parse import urlparse
from uuid import UUID

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.security.websocket import OriginValidator
from django.conf import settings
from django.utils import timezone

from apps.operations import events
from apps.operations.handlers import handler_for
from apps.operations.models import Operation
from apps.operations.snapshots import snapshot
from benchbench.access import visible

LOOK_SECONDS = 5
CLOSE_ORIGIN = 4003
CLOSE_POLICY = 1008


class _Watcher(AsyncJsonWebsocketConsumer):
    """What the two sockets share: who may connect, ping, and looking without being told."""

    group: str

    async def connect(self) -> None:
        # A socket closed before it is accepted reaches the browser as a bare HTTP 403; accept, then say why.
        await self.accept()
        self._looking: asyncio.Task[None] | None = None
        self._announced: dict[str, int] = {}
        if not self._same_origin():
            await self.close(CLOSE_ORIGIN)
        elif not await self._admitted():
            await self.close(CLOSE_POLICY)
        else:
            await self.channel_layer.group_add(self.group, self.channel_name)
            await self.send_event("current_state", await self.current_state())
            self._looking = asyncio.create_task(self._look())

    async def disconnect(self, code: int) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        if isinstance(content, dict) and content.get("type") == "ping":
            await self.send_json({"type": "pong"})

    async def send_event(self, kind: str, data: dict[str, Any]) -> None:
        await self.send_json({"timestamp": timezone.now().isoformat(), "type": kind, "data": data})

    async def operation_moved(self, message: dict[str, Any]) -> None:
        """A hint came through the channel layer."""
        await self.tell(message["operation"])

    async def tell(self, operation_id: str) -> None:
        for kind, data in await self._news(operation_id):
            await self.send_event(kind, data)

    def _same_origin(self) -> bool:
        headers = dict(self.scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        allowed = settings.ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
        return not origin or bool(OriginValidator(None, allowed).valid_origin(urlparse(origin)))

    @database_sync_to_async
    def _news(self, operation_id: str) -> list[tuple[str, dict[str, Any]]]:
        operation = visible(Operation.objects.all(), self.scope["user"]).filter(pk=operation_id).first()
        if operation is None:
            return []
        handler = handler_for(operation)
        kind, data = handler.event(operation)
        finished = handler.completions(operation, self._announced.get(operation_id, 0))
        if not finished:
            return [(kind, data)]
        self._announced[operation_id] = finished[-1][0]
        return [(kind, {**data, **completion}) for _, completion in finished]

    async def _look(self) -> None:
        """Look by itself every few seconds: a lost hint must not leave a watcher behind."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for operation_id in await self.active():
                await self.tell(operation_id)

    async def _admitted(self) -> bool:
        raise NotImplementedError

    async def current_state(self) -> dict[str, Any]:
        raise NotImplementedError

    async def active(self) -> list[str]:
        """Return the ids of the watched operations that may have moved since the last look."""
        raise NotImplementedError


class OperationConsumer(_Watcher):
    """`/ws/operations/<uuid>/`: one operation, to its end."""

    async def _admitted(self) -> bool:
        operation_id: UUID = self.scope["url_route"]["kwargs"]["operation_id"]
        self.operation_id = str(operation_id)
        self.group = events.group_of(operation_id)
        self._ended = False
        return bool(await self._load())

    @database_sync_to_async
    def _load(self) -> Operation | None:
        return visible(Operation.objects.all(), self.scope["user"]).filter(pk=self.operation_id).first()

    async def current_state(self) -> dict[str, Any]:
        operation = await self._load()
        assert operation is not None
        state, announced = await database_sync_to_async(snapshot)(operation)
        self._announced[self.operation_id] = announced
        return state

    async def active(self) -> list[str]:
        """The operation, until it has been told once that it ended."""
        if self._ended:
            return []
        operation = await self._load()
        self._ended = operation is None or not operation.is_active
        return [self.operation_id]


class OperationsConsumer(_Watcher):
    """`/ws/operations/`: every operation that the user may see."""

    group = events.GROUP

    async def _admitted(self) -> bool:
        user = self.scope["user"]
        return bool(user.is_active and user.is_staff)

    @database_sync_to_async
    def current_state(self) -> dict[str, Any]:
        states = []
        for operation in self._watched():
            state, announced = snapshot(operation)
            self._announced[str(operation.pk)] = announced
            states.append(state)
        return {"operations": states}

    @database_sync_to_async
    def active(self) -> list[str]:
        return [str(operation.pk) for operation in self._watched()]

    def _watched(self) -> list[Operation]:
        active = Operation.objects.filter(status__in=("pending", "running"))
        return list(visible(active, self.scope["user"])[:100])
