"""Admission to sockets: allowed origins, sockets per user, and the size and rate of messages."""

import time
from collections import deque
from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

from apps.operations.queueing import connect
from benchbench.errors import BenchbenchError

CLOSE_ORIGIN = 4003
CLOSE_POLICY = 1008
KEEP_SECONDS = 30  # a socket of a killed process counts for this long
MINUTE = 60


class RefusedError(BenchbenchError):
    """A socket was refused or must close. `close_code` is the WebSocket's."""

    status = 403

    def __init__(self, code: str, message: str, *, close_code: int = CLOSE_POLICY) -> None:
        super().__init__(message)
        self.code = code
        self.close_code = close_code


def require_origin(headers: Mapping[bytes, bytes]) -> None:
    """Require the origin of a page whose forms the site accepts: its own, or one of CSRF_TRUSTED_ORIGINS.

    Browsers always send the page's Origin, and the session cookie from any page. Clients without Origin are not
    browsers, and are admitted. Raises RefusedError with the close code 4003.
    """
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin:
        return
    try:
        url = urlsplit(origin)
    except ValueError:  # not a URL, such as "http://["
        url = urlsplit("")
    trusted = [urlsplit(pattern) for pattern in settings.CSRF_TRUSTED_ORIGINS]
    host = headers.get(b"host", b"").decode("latin-1")
    if validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        trusted.append(urlsplit(f"{'https' if settings.HTTPS else 'http'}://{host}"))
    if not any(
        url.scheme == trusted_origin.scheme and is_same_domain(url.netloc, trusted_origin.netloc.removeprefix("*"))
        for trusted_origin in trusted
    ):
        sentence = f"Pages of {origin} may not connect: add the origin to CSRF_TRUSTED_ORIGINS."
        raise RefusedError("origin", sentence, close_code=CLOSE_ORIGIN)


def claim_socket(user_id: int, socket: str) -> None:
    """Count a socket among the open sockets of its user, across all processes of the site.

    Call `renew_socket` at least every KEEP_SECONDS while it is open. Raises RefusedError above the limit.
    """
    redis = connect()
    redis.zremrangebyscore(_build_key(user_id), 0, time.time() - KEEP_SECONDS)
    renew_socket(user_id, socket)
    if redis.zcard(_build_key(user_id)) > settings.BENCHBENCH_SOCKETS_PER_USER:
        release_socket(user_id, socket)
        raise RefusedError(
            "too_many_sockets",
            f"You have {settings.BENCHBENCH_SOCKETS_PER_USER} open sockets: close one, or watch all your operations "
            "on /ws/operations.",
        )


def renew_socket(user_id: int, socket: str) -> None:
    redis = connect()
    redis.zadd(_build_key(user_id), {socket: time.time()})
    redis.expire(_build_key(user_id), KEEP_SECONDS)


def release_socket(user_id: int, socket: str) -> None:
    connect().zrem(_build_key(user_id), socket)


def _build_key(user_id: int) -> str:
    return f"benchbench:sockets:{user_id}"


class MessageRate:
    """The times of a client's messages within the last minute."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def count_message(self, message: str | bytes) -> None:
        """Count a message. Raises RefusedError if it is too long or above the rate."""
        max_bytes, max_messages = settings.BENCHBENCH_SOCKET_MAX_BYTES, settings.BENCHBENCH_SOCKET_MESSAGES_PER_MINUTE
        if len(message.encode() if isinstance(message, str) else message) > max_bytes:
            raise RefusedError("message_too_long", f"A message may have at most {max_bytes} bytes.")
        now = time.monotonic()
        while self._times and self._times[0] <= now - MINUTE:
            self._times.popleft()
        self._times.append(now)
        if len(self._times) > max_messages:
            raise RefusedError("too_many_messages", f"A client may send at most {max_messages} messages a minute.")
