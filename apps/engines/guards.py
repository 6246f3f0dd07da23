"""Guarded requests over HTTP, for search engines and notices: `fetch`.

The library `microsoft-antissrf` checks every address of a name and connects to a checked one, so a name that resolves
to another address later changes nothing. Redirects, proxies of the environment, cookies and compressed bodies are
refused; bytes and seconds have limits, also for headers that drip. A secret appears in the sent headers only.
"""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import requests
from AntiSSRF import AntiSSRFError, AntiSSRFPolicy, IPAddressRanges, PolicyConfigOptions
from AntiSSRF._antissrf_agent import _AntiSSRFAdapter  # the only class that an adapter of ours can extend
from requests import Request
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NewConnectionError

from apps.engines.errors import EngineError, EngineTimeoutError, Secret, TemporaryEngineError
from apps.engines.records import Address

CHECKED_SECONDS = 30.0  # how long a checked address is used before the name is resolved again
LATE_SECONDS = 0.05  # by which a request may exceed its total time
KEPT_CONNECTIONS = 100  # to one address, for later requests of this process
TEMPORARY = (429, 502, 503, 504)
CHUNK_BYTES = 2**16
ERROR_BYTES = 10_000  # read of the body of an error
EXCERPT = 300  # characters of it that a message shows
LONGEST_RETRY_SECONDS = 60.0
# Never searched, even where private addresses are allowed: among them are the credentials of cloud machines.
NEVER = (*IPAddressRanges.link_local, *IPAddressRanges.wireserver, *IPAddressRanges.multicast, "fd00:ec2::254")
WATCHING = "deadlines"
REASON = re.compile(r"certificate verify failed: (.*?)\.? \(_ssl")
_this_thread = threading.local()  # `deadline`: that of the request that it sends
_watched: set["Deadline"] = set()


@dataclass(frozen=True, slots=True)
class Response:
    """The body of an answer with a status of 2xx, and the milliseconds from the request to its last byte."""

    status: int
    body: bytes
    ms: float


class Deadline:
    """The end of a request, at its deadline or when another thread calls `expire`: its connection is shut down.

    The time limits of sockets concern single reads, so headers or a body could drip longer.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.moment = 0.0
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    @contextmanager
    def watch(self, seconds: float) -> Iterator[None]:
        """Limit the requests that this thread sends in the block to `seconds` in total."""
        self.moment = time.monotonic() + seconds
        _watched.add(self)
        _start_watching()
        _this_thread.deadline = self
        try:
            yield
        finally:
            _watched.discard(self)
            with self._lock:
                self._socket = None

    def attach(self, connected: socket.socket) -> None:
        with self._lock:
            self._socket = connected
        if self.is_over:
            self.expire()

    def expire(self) -> None:
        with self._lock:
            self.is_over = True
            if self._socket is not None:
                with suppress(OSError):  # the other side has closed it
                    # Not the method of a TLS socket, which changes what the thread that reads from it uses.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _watch() -> None:
    pause = threading.Event()
    while not pause.wait(LATE_SECONDS):
        for deadline in list(_watched):
            if time.monotonic() > deadline.moment:
                deadline.expire()


def _start_watching() -> None:
    """Start the thread that expires late requests, unless this process has it."""
    if not any(thread.name == WATCHING for thread in threading.enumerate()):
        threading.Thread(target=_watch, name=WATCHING, daemon=True).start()


class _Watched:
    """A mixin of urllib3's connections: the deadline of the thread's request ends them."""

    sock: Any
    host: str
    connect: Callable[[], None]

    def _new_conn(self) -> socket.socket:
        try:
            return super()._new_conn()  # type: ignore[misc]
        except NewConnectionError:
            if self.host != "::1":
                raise
            self.host = "127.0.0.1"  # `localhost` has both addresses, and many servers listen on this one alone
            return super()._new_conn()  # type: ignore[misc]

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is None:
            self.connect()
        _this_thread.deadline.attach(self.sock)
        super().request(*args, **kwargs)  # type: ignore[misc]


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = type("_HTTPConnection", (_Watched, HTTPConnection), {})


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = type("_HTTPSConnection", (_Watched, HTTPSConnection), {})


class _Adapter(_AntiSSRFAdapter):
    """The library's adapter on watched connections; a checked address is used for CHECKED_SECONDS."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
        self.checked: dict[str, tuple[float, tuple[dict[str, Any], dict[str, Any]]]] = {}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(request.url or ""))
        expires, attributes = self.checked.get(origin, (0.0, ({}, {})))
        if time.monotonic() >= expires:
            attributes = super().build_connection_pool_key_attributes(request, verify, cert)
            self.checked[origin] = time.monotonic() + CHECKED_SECONDS, attributes
        request.headers["Host"] = urlsplit(origin).netloc  # the library leaves out the port
        return attributes


@lru_cache(maxsize=16)
def open_adapter(*, private: bool, ca_file: str) -> _Adapter:
    """Return the adapter of this process for such addresses; threads share it."""
    policy = AntiSSRFPolicy(PolicyConfigOptions.NONE if private else PolicyConfigOptions.EXTERNAL_ONLY_LATEST)
    policy.add_xff_header = False
    policy.allow_plain_text_http = True  # a declaration refuses a secret that would be sent in plain text
    policy.add_denied_addresses(list(NEVER))
    return _Adapter(policy, pool_maxsize=KEPT_CONNECTIONS)


def fetch(address: Address, request: Request, secret: Secret, deadline: Deadline | None = None) -> Response:
    """Send a request to an address as its declaration allows, and return the answer.

    Raises TemporaryEngineError for broken connections and the statuses 429, 502, 503 and 504, and EngineError for
    every other answer without a status of 2xx. `deadline`, if given, lets another thread end the request.
    """
    deadline = deadline or Deadline()
    adapter = open_adapter(private=address.private, ca_file=address.ca_file)
    seconds = f"{address.timeouts.total:g} seconds"
    late = f"{address.subject} did not answer completely within {seconds}: find out why, or raise timeouts.total."
    try:
        with deadline.watch(address.timeouts.total):
            response = _fetch(adapter, address, request, secret)
    except Exception as error:
        if not isinstance(error, EngineError):
            adapter.checked.clear()  # the name may have another address by now
        is_late = deadline.is_over or isinstance(error, requests.exceptions.ReadTimeout)
        # Without its cause, whose text may contain headers.
        raise (EngineTimeoutError(late) if is_late else _explain(error, address)) from None
    if deadline.is_over:  # the end of the connection may look like the end of the body
        raise EngineTimeoutError(late)
    return response


def _fetch(adapter: _Adapter, address: Address, request: Request, secret: Secret) -> Response:
    prepared, timeouts = request.prepare(), address.timeouts
    for name, value in (("Accept-Encoding", "identity"), ("User-Agent", "BenchBench")):
        prepared.headers.setdefault(name, value)
    started = time.perf_counter()
    # Not by a session, which follows redirects, or reads and unpacks their whole bodies.
    response = adapter.send(
        prepared, True, (min(timeouts.connect, timeouts.total), timeouts.total), address.ca_file or True
    )
    is_error, is_read = not 200 <= response.status_code < 300, False
    limit, body = ERROR_BYTES if is_error else address.max_bytes, bytearray()
    try:
        if response.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
            raise EngineError(f"{address.subject} sent a compressed body, which was refused: switch compression off.")
        for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
            body += chunk
            if len(body) > limit:
                break
        is_read = len(body) <= limit
    finally:
        if not is_read:
            response.raw.close()  # the remaining bytes must not come before the next answer
        response.raw.release_conn()
    ms = (time.perf_counter() - started) * 1000
    if is_error:
        raise _build_status_error(response, body[:limit], address.subject, secret)
    if not is_read:
        raise EngineError(f"{address.subject} sent more than {limit:,} bytes: ask for less, or raise max_bytes.")
    if secret.is_in(body):
        raise EngineError(f"{address.subject} repeats its secret in an answer: let it leave the secret out.")
    return Response(response.status_code, bytes(body), ms)


def _build_status_error(response: requests.Response, body: bytearray, subject: str, secret: Secret) -> EngineError:
    status, retry_after = response.status_code, response.headers.get("Retry-After", "").strip()
    if 300 <= status < 400:
        return EngineError(f"{subject} answered with a redirect ({status}), which is refused: declare its target.")
    text = " ".join(body.decode("utf-8", "replace").split())
    excerpt = secret.hide("".join(filter(str.isprintable, text)), EXCERPT)
    message = f"{subject} answered {status}" + (f": {excerpt}" if excerpt else ".")
    if status not in TEMPORARY:
        return EngineError(message)
    is_number = retry_after.isascii() and retry_after.isdigit()  # not a date
    return TemporaryEngineError(message, min(float(retry_after), LONGEST_RETRY_SECONDS) if is_number else None)


def _explain(error: Exception, address: Address) -> EngineError:
    """Return the error for an exception of the libraries, in our words: theirs may contain what was sent."""
    subject = address.subject
    match error:
        case EngineError():
            return error
        case AntiSSRFError():
            advice = "declare `private: true` if it is on your network"
            return EngineError(f"{subject} resolves to an address that is not allowed: {advice}.")
        case socket.gaierror():
            return TemporaryEngineError(f"{subject} was not found: its host name does not resolve.")
        case requests.exceptions.SSLError():
            match = REASON.search(str(error))
            reason = match[1] if match else "the handshake failed"
            return EngineError(f"{subject} has no valid TLS certificate ({reason}): correct it there.")
        case requests.exceptions.ConnectTimeout():
            seconds = f"{address.timeouts.connect:g} seconds"
            return TemporaryEngineError(f"{subject} accepts no connection within {seconds}: start it.")
        case requests.ConnectionError() | HTTPError() | OSError() if not isinstance(error, ValueError):
            return TemporaryEngineError(f"{subject} refuses or breaks connections: start it or read its log.")
    return EngineError(f"{subject} cannot be asked ({type(error).__name__}): correct its address or headers.")
