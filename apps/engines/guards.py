"""Guarded requests over HTTP, for search engines and notices: `fetch`.

All addresses of a name are checked, and a checked one is connected to, so a name that resolves to another address later
changes nothing. Redirects, proxies of the environment, cookies and compressed bodies are refused; bytes and seconds
have limits. A secret appears in the sent headers only.
"""

import socket
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11
from requests import PreparedRequest, Request

from apps.engines.addresses import ForbiddenAddressError
from apps.engines.connections import (
    Answer,
    BrokenError,
    ConnectTimeoutError,
    Deadline,
    HandshakeError,
    LateError,
    MalformedError,
    Message,
    Origin,
    ask,
)
from apps.engines.errors import EngineError, EngineTimeoutError, TemporaryEngineError
from apps.engines.records import Address
from benchbench.texts.secret import Secret

TEMPORARY = (429, 502, 503, 504)
ERROR_BYTES = 10_000  # read of the body of an error
EXCERPT = 300  # characters of it that a message shows
LONGEST_RETRY_SECONDS = 60.0
PORTS = {"http": 80, "https": 443}
ADVICE = {
    **dict.fromkeys((401, 403), "correct its secret or headers"),
    **dict.fromkeys((404, 405), "correct its url or method"),
    429: "wait, or ask it more slowly",
}


@dataclass(frozen=True, slots=True)
class Response:
    """The body of an answer with a status of 2xx, and the milliseconds from the request to its last byte.

    `ended` is the time of its last byte, of the performance counter.
    """

    status: int
    body: bytes
    ms: float
    ended: float


def fetch(address: Address, request: Request, secret: Secret, deadline: Deadline | None = None) -> Response:
    """Send a request to an address as its declaration allows, and return the answer.

    Raises TemporaryEngineError for broken connections and the statuses 429, 502, 503 and 504, and EngineError for
    every other answer without a status of 2xx. `deadline`, if given, lets another thread end the request.
    """
    deadline = deadline or Deadline()
    deadline.start(address.timeouts.total, connect=address.timeouts.connect)
    try:
        return _fetch(address, request, secret, deadline)
    except EngineError:
        raise
    except Exception as error:
        # Without its cause, whose text may contain headers.
        raise _explain(error, address, is_late=deadline.is_over) from None


def _fetch(address: Address, request: Request, secret: Secret, deadline: Deadline) -> Response:
    origin, message = _write(request.prepare(), address)
    started = time.perf_counter()
    answer = ask(origin, message, deadline, (address.max_bytes, ERROR_BYTES))
    ended = time.perf_counter()
    if answer.headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
        raise EngineError(f"{address.subject} sent a compressed body, which was refused: switch compression off.")
    if not 200 <= answer.status < 300:
        raise _build_status_error(answer, address.subject, secret)
    if not answer.is_complete:
        limit = f"{address.max_bytes:,} bytes"
        raise EngineError(f"{address.subject} sent more than {limit}: ask for less, or raise max_bytes.")
    if secret.is_in(answer.body):
        raise EngineError(f"{address.subject} repeats its secret in an answer: let it leave the secret out.")
    return Response(answer.status, bytes(answer.body), (ended - started) * 1000, ended)


def _write(prepared: PreparedRequest, address: Address) -> tuple[Origin, Message]:
    url = urlsplit(prepared.url or "")
    origin = Origin(url.scheme, url.hostname or "", url.port or PORTS[url.scheme], address.private, address.ca_file)
    headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "BenchBench"}
    headers |= {**prepared.headers, "Host": url.netloc}
    body = prepared.body or b""
    return origin, Message(
        method=prepared.method or "",
        target=prepared.path_url,
        headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        body=body.encode() if isinstance(body, str) else body,
    )


def _build_status_error(answer: Answer, subject: str, secret: Secret) -> EngineError:
    status, retry_after = answer.status, answer.headers.get("retry-after", "").strip()
    if 300 <= status < 400:
        return EngineError(f"{subject} answered with a redirect ({status}), which is refused: declare its target.")
    text = " ".join(answer.body[:ERROR_BYTES].decode("utf-8", "replace").split())
    excerpt = secret.hide("".join(filter(str.isprintable, text)), EXCERPT)
    advice = ADVICE.get(status, "read its log" if status >= 500 else "correct its declaration")
    message = f"{subject} answered {status}: {advice}." + (f" It says: {excerpt}" if excerpt else "")
    if status not in TEMPORARY:
        return EngineError(message)
    is_number = retry_after.isascii() and retry_after.isdigit()  # not a date
    return TemporaryEngineError(message, min(float(retry_after), LONGEST_RETRY_SECONDS) if is_number else None)


def _explain(error: Exception, address: Address, *, is_late: bool) -> EngineError:
    """Return the error for an exception of a library, in our words: theirs may contain what was sent."""
    subject = address.subject
    if is_late or isinstance(error, LateError | TimeoutError):
        seconds = f"{address.timeouts.total:g} seconds"
        return EngineTimeoutError(
            f"{subject} did not answer completely within {seconds}: find out why, or raise timeouts.total."
        )
    match error:
        case ForbiddenAddressError():
            advice = "declare `private: true` for it if it is on your network or this machine"
            return EngineError(f"{subject} resolves to an address that is not allowed: {advice}.")
        case socket.gaierror():
            return TemporaryEngineError(f"{subject} was not found: its host name does not resolve.")
        case HandshakeError():
            return EngineError(f"{subject} has no valid TLS certificate ({error}): correct it there.")
        case MalformedError():
            return EngineError(f"{subject} sent what HTTP does not allow: correct it, or the proxy before it.")
        case ConnectTimeoutError():
            seconds = f"{address.timeouts.connect:g} seconds"
            return TemporaryEngineError(f"{subject} accepts no connection within {seconds}: start it.")
        case BrokenError() | OSError() if not isinstance(error, ValueError):  # those of requests are both
            return TemporaryEngineError(f"{subject} refuses or breaks connections: start it or read its log.")
    name = "InvalidHeader" if isinstance(error, h11.LocalProtocolError) else type(error).__name__
    return EngineError(f"{subject} cannot be asked ({name}): correct its address or headers.")
