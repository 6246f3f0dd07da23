"""Admission to sockets: who may open one, how many, and how much may be sent on it."""

import time
from collections import deque
from collections.abc import Mapping
from urllib.parse import urlsplit

import django_rq
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

from benchbench.errors import BenchbenchError

CLOSE_ORIGIN = 4003
CLOSE_POLICY = 1008
KEEP_SECONDS = 30  # a socket whose process was killed holds its place so long
MINUTE = 60


class RefusedError(BenchbenchError):
    """A socket is not opened, or not kept open. `close_code` is the WebSocket's."""

    status = 403

    def __init__(self, code: str, message: str, *, close_code: int = CLOSE_POLICY) -> None:
        super().__init__(message)
        self.code = code
        self.close_code = close_code


def require_origin(headers: Mapping[bytes, bytes]) -> None:
    """Admit a page whose forms the site would take too: its own, and those of CSRF_TRUSTED_ORIGINS.

    A browser always names the origin of the page, and sends the session along whosever page it is; what sends no
    Origin is no browser. Raises RefusedError with the close code 4003.
    """
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin:
        return
    try:
        given = urlsplit(origin)
    except ValueError:  # no address at all, such as "http://["
        given = urlsplit("")
    trusted = [urlsplit(pattern) for pattern in settings.CSRF_TRUSTED_ORIGINS]
    host = headers.get(b"host", b"").decode("latin-1")
    if validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        trusted.append(urlsplit(f"{'https' if settings.HTTPS else 'http'}://{host}"))
    if not any(
        given.scheme == trusted_origin.scheme and is_same_domain(given.netloc, trusted_origin.netloc.removeprefix("*"))
        for trusted_origin in trusted
    ):
        sentence = f"Pages of {origin} may not connect here: name the origin in CSRF_TRUSTED_ORIGINS."
        raise RefusedError("origin", sentence, close_code=CLOSE_ORIGIN)


def take_place(user_id: int, socket: str) -> None:
    """Count a socket among those that its user has open, on all processes of the site.

    Call `keep_place` at least every KEEP_SECONDS while it is open. Raises RefusedError for one too many.
    """
    redis = django_rq.get_connection("default")
    redis.zremrangebyscore(_places(user_id), 0, time.time() - KEEP_SECONDS)
    keep_place(user_id, socket)
    if redis.zcard(_places(user_id)) > settings.BENCHBENCH_SOCKETS_PER_USER:
        leave_place(user_id, socket)
        raise RefusedError(
            "too_many_sockets",
            f"You have {settings.BENCHBENCH_SOCKETS_PER_USER} sockets open already: close one, or watch all your "
            "operations on one, /ws/operations.",
        )


def keep_place(user_id: int, socket: str) -> None:
    redis = django_rq.get_connection("default")
    redis.zadd(_places(user_id), {socket: time.time()})
    redis.expire(_places(user_id), KEEP_SECONDS)


def leave_place(user_id: int, socket: str) -> None:
    django_rq.get_connection("default").zrem(_places(user_id), socket)


def _places(user_id: int) -> str:
    return f"benchbench:sockets:{user_id}"


class Pace:
    """What one client has said within the last minute."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def hear(self, message: str | bytes) -> None:
        """Raise RefusedError for a message that is too long, or one too many."""
        longest, most = settings.BENCHBENCH_SOCKET_MAX_BYTES, settings.BENCHBENCH_SOCKET_MESSAGES_PER_MINUTE
        if len(message.encode() if isinstance(message, str) else message) > longest:
            raise RefusedError("message_too_long", f"A message may have at most {longest} bytes.")
        now = time.monotonic()
        while self._times and self._times[0] <= now - MINUTE:
            self._times.popleft()
        self._times.append(now)
        if len(self._times) > most:
            raise RefusedError("too_many_messages", f"A client may send at most {most} messages a minute.")
