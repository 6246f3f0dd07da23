"""Guarded requests over HTTP, for search engines and notices: `open_session` and `fetch`.

The library `microsoft-antissrf` checks every address of a name and connects to a checked one, so a name that resolves
to another address later changes nothing. Redirects, proxies of the environment, cookies and compressed bodies are
refused; bytes and seconds have limits, also for headers that drip. A secret appears in the sent headers only.
"""

import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from AntiSSRF import AntiSSRFError, AntiSSRFPolicy, IPAddressRanges, PolicyConfigOptions
from AntiSSRF._antissrf_agent import _AntiSSRFAdapter  # the only class that an adapter of ours can extend
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from apps.engines.deadlines import Deadline, WatchedConnection
from apps.engines.errors import EngineError, EngineTimeoutError, TemporaryEngineError
from apps.engines.secrets import Secret

CHECKED_SECONDS = 30.0  # how long a checked address is used before the name is resolved again
TEMPORARY = (429, 502, 503, 504)
CHUNK_BYTES = 2**16
ERROR_BYTES = 10_000  # read of the body of an error
EXCERPT = 300  # characters of it that a message shows
LONGEST_RETRY_SECONDS = 60.0
# Never searched, even where private addresses are allowed: among them are the credentials of cloud machines.
NEVER = (*IPAddressRanges.link_local, *IPAddressRanges.wireserver, *IPAddressRanges.multicast)


@dataclass(frozen=True, slots=True)
class Request:
    """A request: method, address with its query string, headers and body. Headers are not in its repr."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to connect and in total, and the most bytes of a body."""

    connect: float = 3.0
    total: float = 10.0
    max_bytes: int = 5_000_000


class _HTTPConnection(WatchedConnection, HTTPConnection):
    pass


class _HTTPSConnection(WatchedConnection, HTTPSConnection):
    pass


class _HTTPPool(HTTPConnectionPool):
    ConnectionCls = _HTTPConnection


class _HTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection


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


def open_session(*, private: bool = False, ca_file: str = "") -> requests.Session:
    """Return a session for `fetch`, to be used by one thread. Only a `private` one reaches private addresses.

    `ca_file` has the certificates that are trusted instead of the usual ones.
    """
    policy = AntiSSRFPolicy(PolicyConfigOptions.NONE if private else PolicyConfigOptions.EXTERNAL_ONLY_LATEST)
    policy.add_xff_header = False
    policy.allow_plain_text_http = True  # a declaration refuses a secret that would be sent in plain text
    policy.add_denied_addresses(list(NEVER))
    session: requests.Session = policy.get_antissrf_session()
    session.trust_env = False
    session.verify = ca_file or True
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(policy))
    return session


@dataclass(frozen=True, slots=True)
class Response:
    """The body of an answer with a status of 2xx, and the milliseconds from the request to its last byte."""

    status: int
    body: bytes
    ms: float


def fetch(
    session: requests.Session,
    request: Request,
    limits: Limits,
    *,
    subject: str,
    secret: Secret | None = None,
    deadline: Deadline | None = None,
) -> Response:
    """Send a request and return its answer. `subject` begins the message of an error: "The engine shop".

    Raises TemporaryEngineError for broken connections and the statuses 429, 502, 503 and 504, and EngineError for
    every other answer without a status of 2xx. `deadline`, if given, lets another thread end the request.
    """
    secret = secret or Secret("")
    deadline = deadline or Deadline()
    try:
        with deadline.watch(limits.total):
            response = _fetch(session, request, limits, subject, secret)
    except EngineError as error:
        if not deadline.is_over:
            raise
        raise _build_timeout(subject, limits) from error
    except Exception as error:
        # Without its cause, whose text may contain headers.
        raise _build_error(error, session, subject, limits, is_late=deadline.is_over) from None
    if deadline.is_over:  # the end of the connection may look like the end of the body
        raise _build_timeout(subject, limits)
    return response


def _fetch(session: requests.Session, request: Request, limits: Limits, subject: str, secret: Secret) -> Response:
    prepared = requests.PreparedRequest()
    headers = {"Accept-Encoding": "identity", "User-Agent": "BenchBench", **request.headers}
    prepared.prepare(method=request.method, url=request.url, headers=headers, data=request.body)
    started = time.perf_counter()
    # Not by `Session.send`, which reads and unpacks the whole body of a redirect.
    response = session.get_adapter(prepared.url or "").send(
        prepared,
        stream=True,
        timeout=(min(limits.connect, limits.total), limits.total),
        verify=session.verify or True,
    )
    is_read = False
    try:
        _refuse_encoding(response, subject)
        is_error = not 200 <= response.status_code < 300
        body = _read_body(response, ERROR_BYTES if is_error else limits.max_bytes, subject, cut=is_error)
        is_read = not is_error or len(body) < ERROR_BYTES
    finally:
        if not is_read:
            response.raw.close()  # the remaining bytes must not come before the next answer
        response.raw.release_conn()
    ms = (time.perf_counter() - started) * 1000
    if is_error:
        raise _build_status_error(response, body, subject, secret)
    if secret.is_in(body):
        raise EngineError(f"{subject} repeats its secret in an answer, which is not kept: let it leave the secret out.")
    return Response(response.status_code, body, ms)


def _refuse_encoding(response: requests.Response, subject: str) -> None:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise EngineError(f"{subject} sent a compressed body, which was refused: switch its compression off.")


def _read_body(response: requests.Response, limit: int, subject: str, *, cut: bool) -> bytes:
    """Return the body. One of more than `limit` bytes is cut, or refused."""
    chunks, size = [], 0
    for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            if cut:
                break
            raise EngineError(
                f"{subject} sent more than {limit:,} bytes: ask for fewer hits or fields, or raise max_bytes."
            )
    return b"".join(chunks)[:limit]


def _build_status_error(response: requests.Response, body: bytes, subject: str, secret: Secret) -> EngineError:
    status = response.status_code
    if 300 <= status < 400:
        return EngineError(f"{subject} answered with a redirect ({status}), which is refused: declare its target.")
    text = " ".join(body.decode("utf-8", "replace").split())
    excerpt = secret.hide("".join(filter(str.isprintable, text)), EXCERPT)
    message = f"{subject} answered {status}" + (f": {excerpt}" if excerpt else ".")
    if status in TEMPORARY:
        return TemporaryEngineError(message, retry_after=_read_retry_after(response))
    return EngineError(message)


def _read_retry_after(response: requests.Response) -> float | None:
    """Return the seconds of the header Retry-After, at most LONGEST_RETRY_SECONDS; None for a date or none."""
    value = response.headers.get("Retry-After", "").strip()
    return min(float(value), LONGEST_RETRY_SECONDS) if value.isascii() and value.isdigit() else None


def _build_timeout(subject: str, limits: Limits) -> EngineTimeoutError:
    return EngineTimeoutError(
        f"{subject} did not answer completely within {limits.total:g} seconds: find out why, or raise timeouts.total."
    )


def _build_error(
    error: Exception, session: requests.Session, subject: str, limits: Limits, *, is_late: bool
) -> EngineError:
    """Return the error for an exception of the libraries, in our words: theirs may contain what was sent."""
    for adapter in session.adapters.values():
        if isinstance(adapter, _Adapter):
            adapter.checked.clear()  # the name may have another address by now
    if is_late or isinstance(error, requests.exceptions.ReadTimeout):
        return _build_timeout(subject, limits)
    if isinstance(error, AntiSSRFError):
        return EngineError(
            f"{subject} resolves to an address that is not allowed: declare `private: true` if it is on your network."
        )
    if isinstance(error, socket.gaierror):
        return TemporaryEngineError(f"{subject} was not found: its host name does not resolve.")
    if isinstance(error, requests.exceptions.SSLError):
        return EngineError(f"{subject} has no valid TLS certificate ({_find_tls_reason(error)}): correct it there.")
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return TemporaryEngineError(f"{subject} accepts no connection within {limits.connect:g} seconds: start it.")
    if isinstance(error, requests.ConnectionError | HTTPError | OSError) and not isinstance(error, ValueError):
        return TemporaryEngineError(f"{subject} refuses or breaks connections: start it or read its log.")
    return EngineError(f"{subject} cannot be asked ({type(error).__name__}): correct its address or headers.")


def _find_tls_reason(error: BaseException) -> str:
    """Return why a certificate is refused, from the error of the ssl module inside others."""
    seen: list[BaseException] = [error]
    for inner in seen:
        if isinstance(inner, ssl.SSLCertVerificationError):
            return inner.verify_message.rstrip(".")
        causes = (*inner.args, getattr(inner, "reason", None), inner.__cause__, inner.__context__)
        seen.extend(cause for cause in causes if isinstance(cause, BaseException) and cause not in seen)
    return "the handshake failed"
