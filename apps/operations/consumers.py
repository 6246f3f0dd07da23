"""Consumers of WebSockets on which staff watch operations. Each message is the state of the database (docs/events.md).

The scope must have `identify`, a coroutine function that authenticates the credentials at that moment. It returns the
user, anonymous if the credentials are invalid, and their expiry in seconds since 1970, or None. `subprotocol` in the
scope is optional and echoed.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.operations import admission, events
from apps.operations.admission import RefusedError
from apps.operations.handlers import find_handler
from apps.operations.models import Operation, Status
from apps.operations.progress import snapshot
from benchbench.access import AnyUser, visible
from benchbench.timestamps import timestamp

log = logging.getLogger(__name__)
LOOK_SECONDS = 5
MISSED = timedelta(minutes=1)  # an operation that ended this recently is still reported if its hint was lost
MAX_OPERATIONS = 100
PERMISSIONS = ("operations.view_operation", "operations.change_operation")
CLOSE_ERROR = 1011


def _wrap_event(kind: str, data: Mapping[str, object]) -> str:
    return json.dumps({"timestamp": timestamp(timezone.now()), "type": kind, "data": data})


class _Watcher(AsyncWebsocketConsumer):
    """The base of the sockets: permission to connect and stay, ping, and polling in case hints are lost."""

    group: str
    open_channels: ClassVar[set[str]] = set()  # channel names of the sockets of this process

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.user: AnyUser = AnonymousUser()
        self._expires_at: float | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._refused = False
        self._message_rate = admission.MessageRate()
        self._hinted = asyncio.Event()
        self._changed_ids: dict[str, None] = {}
        self._last_ordinals: dict[str, int] = {}
        self._active_ids: set[str] = set()  # ids last reported as active
        self._ended_ids: set[str] = set()  # ids reported as ended
        try:
            await super().__call__(scope, receive, send)
        finally:  # also after an error: no client is left
            await self._release()

    async def connect(self) -> None:
        # A socket closed before it is accepted reaches the browser as a bare HTTP 403, so accept, then send the reason.
        await self.accept(self.scope.get("subprotocol"))
        try:
            admission.require_origin(dict(self.scope["headers"]))
            await self._require()
            if len(self.open_channels) >= settings.BENCHBENCH_SOCKETS_PER_PROCESS:
                raise RefusedError("busy", "The site has reached its limit of open sockets: try again in a minute.")
        except RefusedError as error:
            await self._refuse(error)
        else:
            self.open_channels.add(self.channel_name)
            self._watch_task = asyncio.create_task(self._watch())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._refused:
            return
        try:
            self._message_rate.count_message(text_data or bytes_data or "")
        except RefusedError as error:
            await self._refuse(error)
            return
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(text_data or "")
            if isinstance(message, dict) and message.get("type") == "ping":
                await self.send(json.dumps({"type": "pong"}))
                return
        await self.send_event("error", {"code": "unknown_message", "detail": 'Send {"type": "ping"}, or nothing.'})

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Note a hint of the channel layer. Hints that arrive while others are being sent are sent together afterwards.

        Channels would handle each hint alone, after a cleanup in the thread that also reads the database.
        """
        if message["type"] != events.HINT:
            await super().dispatch(message)
            return
        self._changed_ids[message["operation"]] = None
        self._hinted.set()

    async def send_event(self, kind: str, data: Mapping[str, object]) -> None:
        if not self._refused:
            await self.send(_wrap_event(kind, data))

    async def _watch(self) -> None:
        """Send the whole state, then changes as hints arrive. Poll too, since hints may be lost.

        An error closes the socket: a client that reconnects gets the current state.
        """
        try:
            await self.channel_layer.group_add(self.group, self.channel_name)
            await self.send_initial_state()
            while True:
                await self._listen(self._poll_seconds())
                await self._require()
                await self._send_changes(await self.list_active())
        except RefusedError as error:
            await self._refuse(error)
        except Exception:
            log.exception("A socket of %s failed.", self.user)
            self._refused = True
            await self.close(CLOSE_ERROR)

    async def send_initial_state(self) -> None:
        """Send the current state of all watched operations, before any hint."""
        await self.send_event("current_state", await self.load_state())
        await self._send_changes(list(self._active_ids), is_initial=True)

    async def _listen(self, seconds: float) -> None:
        """Send the changes of hinted operations for `seconds`."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._hinted.wait(), left)
            except TimeoutError:
                return
            self._hinted.clear()
            changed_ids, self._changed_ids = self._changed_ids, {}
            await self._send_changes(list(changed_ids))

    def _poll_seconds(self) -> float:
        """Return the seconds until the next poll, at most until the credentials expire."""
        left = (self._expires_at or float("inf")) - time.time()
        return min(LOOK_SECONDS, left) if left > 0 else LOOK_SECONDS

    async def _send_changes(self, operation_ids: list[str], *, is_initial: bool = False) -> None:
        for operation_id in operation_ids:
            for kind, data in await self._load_messages(operation_id, is_initial):
                await self.send_event(kind, data)

    async def _require(self) -> None:
        """Authenticate again. Raises RefusedError if the user may not watch this, or no longer."""
        self.user, self._expires_at = await self.scope["identify"]()
        await database_sync_to_async(self._require_user)()

    def _require_user(self) -> None:
        if not self.user.is_authenticated:
            raise RefusedError(
                "not_authenticated",
                "Log in, or offer the subprotocol access_token.<token> with a valid token.",
            )
        if not (self.user.is_active and self.user.is_staff and any(map(self.user.has_perm, PERMISSIONS))):
            raise RefusedError("permission_denied", "You may not view operations: ask an administrator.")
        self.require_more()
        (admission.renew_socket if self._watch_task else admission.claim_socket)(self.user.pk, self.channel_name)

    async def _refuse(self, error: RefusedError) -> None:
        if not self._refused:
            await self.send_event("error", {"code": error.code, "detail": error.message})
            self._refused = True
            await self.close(error.close_code)

    async def _release(self) -> None:
        if self._watch_task is not None:
            self.open_channels.discard(self.channel_name)
            self._watch_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch_task
            await self.channel_layer.group_discard(self.group, self.channel_name)
        if self.user.pk is not None:
            await database_sync_to_async(admission.release_socket)(self.user.pk, self.channel_name)

    @database_sync_to_async
    def _load_messages(self, operation_id: str, is_initial: bool) -> list[tuple[str, dict[str, object]]]:
        """Return the messages for an operation that may have changed. Its end is reported once, as the last."""
        if operation_id in self._ended_ids:
            return []
        self._active_ids.discard(operation_id)
        operation = visible(Operation.objects.filter(pk=operation_id), self.user).first()
        if operation is None:
            return []
        (self._active_ids if operation.is_active else self._ended_ids).add(operation_id)
        return self.build_messages(operation, is_initial)

    def build_messages(self, operation: Operation, is_initial: bool) -> list[tuple[str, dict[str, object]]]:
        """Return events for the newly finished parts of an operation, in order and each once, then its state.

        With `is_initial`, the client has just received the state of the active operations.
        """
        operation_id, handler = str(operation.pk), find_handler(operation)
        completions = handler.list_completions(operation, self._last_ordinals.get(operation_id, 0))
        if is_initial and operation.is_active and not completions:
            return []
        if completions:
            self._last_ordinals[operation_id] = completions[-1][0]
        kind, data = handler.build_event(operation)
        return [*((kind, {**data, **fields}) for _, fields in completions), (kind, data)]

    def _state(self, operation: Operation) -> dict[str, Any]:
        self._active_ids.add(str(operation.pk))
        return snapshot(operation)

    def require_more(self) -> None:
        """Check requirements beyond the permission to view operations. Raises RefusedError."""

    async def load_state(self) -> dict[str, object]:
        raise NotImplementedError

    async def list_active(self) -> list[str]:
        """Return the ids of the watched operations that may have changed since last reported."""
        raise NotImplementedError


class OperationConsumer(_Watcher):
    """`/ws/operations/<uuid>`: one operation until its end."""

    def require_more(self) -> None:
        self.operation_id = str(self.scope["url_route"]["kwargs"]["operation_id"])
        self.group = events.group_of(self.operation_id)
        if not self._find().exists():
            raise RefusedError("not_found", f"The operation {self.operation_id} does not exist, or you may not see it.")

    def _find(self) -> QuerySet[Operation]:
        return visible(Operation.objects.filter(pk=self.operation_id), self.user)

    @database_sync_to_async
    def load_state(self) -> dict[str, object]:
        return self._state(self._find().get())

    async def list_active(self) -> list[str]:
        return list(self._active_ids)


class HintsConsumer(OperationConsumer):
    """`/ws/operations/<uuid>/hints`: signals that an operation may have changed, for pages that then reload it."""

    async def send_initial_state(self) -> None:
        await self._send_changes([self.operation_id])

    def build_messages(self, operation: Operation, is_initial: bool) -> list[tuple[str, dict[str, object]]]:
        return [("moved", {"operation_id": str(operation.pk)})]


class OperationsConsumer(_Watcher):
    """`/ws/operations`: every operation that the user may see."""

    group = events.GROUP

    @database_sync_to_async
    def load_state(self) -> dict[str, object]:
        recent = self._list_recent()
        active = recent.filter(status__in=Status.active())
        self._ended_ids = {str(pk) for pk in recent.exclude(status__in=Status.active()).values_list("pk", flat=True)}
        return {
            "operations": [self._state(operation) for operation in active[:MAX_OPERATIONS]],
            "total": active.count(),
        }

    @database_sync_to_async
    def list_active(self) -> list[str]:
        recent = [str(pk) for pk in self._list_recent().values_list("pk", flat=True)[:MAX_OPERATIONS]]
        self._ended_ids.intersection_update(recent)
        return [pk for pk in dict.fromkeys((*recent, *self._active_ids)) if pk not in self._ended_ids]

    def _list_recent(self) -> QuerySet[Operation]:
        """Return active operations and those that just ended, whose hint may have been lost."""
        recent = Q(status__in=Status.active()) | Q(finished_at__gte=Now() - MISSED)
        return visible(Operation.objects.filter(recent), self.user)


class NowhereConsumer(AsyncWebsocketConsumer):
    """Any other address, which would otherwise be a server error."""

    async def connect(self) -> None:
        await self.accept(self.scope.get("subprotocol"))
        detail = (
            f"The socket {self.scope['path']} does not exist: choose one of /ws/operations, /ws/operations/<id>, "
            "/ws/operations/<id>/hints."
        )
        await self.send(_wrap_event("error", {"code": "not_found", "detail": detail}))
        await self.close(admission.CLOSE_POLICY)
