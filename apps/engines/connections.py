"""Connections over HTTP/1.1. Bytes are counted, and the time of a request ends, at the socket.

The library h11 reads answers. It refuses what HTTP does not allow, such as a chunk whose length is not hexadecimal.
"""

import os
import re
import select
import socket
import ssl
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import certifi
import h11

from apps.engines import process
from apps.engines.addresses import Target, resolve

CHECKED_SECONDS = 30.0  # how long the checked addresses of a name are used before it is resolved again
MAX_IDLE = 100  # connections to one origin, for later requests of this process
CHUNK_BYTES = 2**16  # read at once
HEAD_BYTES = 2**16  # at most, of a status line with its headers, of a chunk's line, of trailers
REASON = re.compile(r"certificate verify failed: (.*?)\.? \(_ssl")


class ConnectTimeoutError(Exception):
    """A host accepted no connection in time."""


class HandshakeError(Exception):
    """TLS could not begin; the text is the reason."""


class LateError(Exception):
    """The time of a request is over."""


class BrokenError(Exception):
    """The other side ended the connection before its answer was complete."""


class MalformedError(Exception):
    """The other side sent what HTTP does not allow, or interim answers without an end."""


class Deadline:
    """The end of a request: a moment, or that when another thread calls `expire`, which shuts its connection down."""

    def __init__(self) -> None:
        self.connect_seconds = self._moment = 0.0
        self._is_expired = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        return self._is_expired or time.monotonic() >= self._moment

    def start(self, seconds: float, *, connect: float) -> None:
        """Begin the request: it may take `seconds` in total, and `connect` seconds until it has a connection."""
        self.connect_seconds = connect
        self._moment = time.monotonic() + seconds

    def compute_remaining(self, longest: float = float("inf")) -> float:
        """Return the seconds that remain, at most `longest`. Raises LateError without any."""
        remaining = self._moment - time.monotonic()
        if self._is_expired or remaining <= 0:
            raise LateError
        return min(remaining, longest)

    def attach(self, connected: socket.socket | None) -> None:
        with self._lock:
            self._socket = connected

    def expire(self) -> None:
        with self._lock:
            self._is_expired = True
            if self._socket is not None:
                with suppress(OSError):  # the other side has closed it
                    # Not the method of a TLS socket, which changes what the thread that reads from it uses.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: its scheme, host and port; `ca_file` has the authorities of its certificate, "" for public ones."""

    scheme: str
    host: str
    port: int
    private: bool
    ca_file: str


@dataclass(frozen=True, slots=True)
class Message:
    """A request: method, path with query, headers and body."""

    method: str
    target: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass(slots=True)
class Answer:
    """An answer; names of headers are in small letters. `is_complete` is false if it has too many bytes."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False


class Connection:
    """A connection to a checked address of an origin."""

    def __init__(self, connected: socket.socket, target: Target) -> None:
        self.target = target
        self._socket = connected
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self._has_ended = False
        self._readable = select.poll()
        self._readable.register(connected, select.POLLIN)

    @property
    def is_idle(self) -> bool:
        """Whether a request can be sent: the other side has neither ended the connection nor sent more."""
        return self._state.our_state is h11.IDLE and not self._readable.poll(0)

    def close(self) -> None:
        self._socket.close()

    def exchange(self, message: Message, deadline: Deadline, limits: tuple[int, int]) -> Answer:
        """Send a request and return its answer; see `ask`."""
        request = h11.Request(method=message.method, target=message.target, headers=message.headers)
        events = [request, *([h11.Data(message.body)] if message.body else []), h11.EndOfMessage()]
        data = b"".join(self._state.send(event) or b"" for event in events)
        deadline.attach(self._socket)
        try:
            self._socket.settimeout(deadline.compute_remaining())
            self._socket.sendall(data)
            answer = self._receive(deadline, limits)
        except h11.RemoteProtocolError:  # its text may repeat a secret
            raise (BrokenError if self._has_ended else MalformedError) from None
        finally:
            deadline.attach(None)
        if answer.is_complete and not self._state.trailing_data[0]:
            with suppress(h11.LocalProtocolError):  # one of both sides closes the connection
                self._state.start_next_cycle()
        return answer

    def _receive(self, deadline: Deadline, limits: tuple[int, int]) -> Answer:
        answer, limit = Answer(), 0
        unread = 2 * HEAD_BYTES  # interim answers may come first
        while len(answer.body) <= limit and unread > 0:
            deadline.compute_remaining()
            event = self._state.next_event()
            if event is h11.NEED_DATA:
                unread -= self._read(deadline, min(CHUNK_BYTES, unread))
            elif isinstance(event, h11.Response):
                answer.status = event.status_code
                answer.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
                limit = limits[0] if 200 <= answer.status < 300 else limits[1]
                unread += 2 * limit + CHUNK_BYTES  # chunks have lines
            elif isinstance(event, h11.Data):
                answer.body += event.data
            elif isinstance(event, h11.EndOfMessage):
                answer.is_complete = True
                break
        if not answer.status:
            raise MalformedError
        return answer

    def _read(self, deadline: Deadline, number: int) -> int:
        self._socket.settimeout(deadline.compute_remaining())
        data = self._socket.recv(number)
        self._has_ended = not data
        self._state.receive_data(data)
        return len(data)


_idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
process.add(_idle.clear)
_checked: dict[Origin, tuple[float, list[Target]]] = {}
process.add(_checked.clear)
os.register_at_fork(after_in_child=_idle.clear)  # processes must not share a connection


def ask(origin: Origin, message: Message, deadline: Deadline, limits: tuple[int, int]) -> Answer:
    """Send a request and return its answer, of at most `limits` bytes: for a status of 2xx, and for others.

    Raises ForbiddenAddressError, the errors of this module, LocalProtocolError for a request that HTTP does not allow,
    and OSError.
    """
    try:
        connection = _take_idle(origin) or _connect(origin, deadline)
        try:
            answer = connection.exchange(message, deadline, limits)
        except BaseException:
            connection.close()
            raise
    except Exception:
        _checked.pop(origin, None)  # the name may have another address by now
        raise
    if connection.is_idle and len(_idle[origin]) < MAX_IDLE:
        _idle[origin].append(connection)
    else:
        connection.close()
    return answer


def _take_idle(origin: Origin) -> Connection | None:
    targets = _resolve(origin)
    while True:
        try:
            connection = _idle[origin].pop()
        except IndexError:  # another thread may have taken the last
            return None
        if connection.target in targets and connection.is_idle:
            return connection
        connection.close()


def _resolve(origin: Origin) -> list[Target]:
    expires, targets = _checked.get(origin, (0.0, []))
    if time.monotonic() >= expires:
        targets = resolve(origin.host, origin.port, private=origin.private)
        _checked[origin] = time.monotonic() + CHECKED_SECONDS, targets
    return targets


def _connect(origin: Origin, deadline: Deadline) -> Connection:
    """Return a connection to the first address that accepts one: `localhost` has two, of which many servers use one."""
    ends = time.monotonic() + deadline.connect_seconds
    problem: OSError = ConnectionError()
    for target in _resolve(origin):
        connected = socket.socket(target[0], socket.SOCK_STREAM)
        try:
            connected.settimeout(deadline.compute_remaining(max(ends - time.monotonic(), 0.001)))
            connected.connect(target[1])
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Connection(_encrypt(connected, origin, deadline), target)
        except OSError as error:
            connected.close()
            problem = error
        except BaseException:
            connected.close()
            raise
    if isinstance(problem, TimeoutError):
        deadline.compute_remaining()
        raise ConnectTimeoutError from None
    raise problem


def _encrypt(connected: socket.socket, origin: Origin, deadline: Deadline) -> socket.socket:
    if origin.scheme != "https":
        return connected
    deadline.attach(connected)
    try:
        connected.settimeout(deadline.compute_remaining())
        return _load_context(origin.ca_file).wrap_socket(connected, server_hostname=origin.host)
    except ssl.SSLError as error:
        match = REASON.search(str(error))
        raise HandshakeError(match[1] if match else "the handshake failed") from None
    except TimeoutError:
        raise LateError from None
    finally:
        deadline.attach(None)


@lru_cache(maxsize=16)
def _load_context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file or certifi.where())
    context.set_alpn_protocols(["http/1.1"])
    return context
