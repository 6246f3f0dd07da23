"""Requests to a site, retried if that is safe, and the error of a failed request."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import uuid4

import httpx

from benchbench.errors import BenchbenchError

ROOT = "/api/v2"
ATTEMPTS = 6
FIRST_PAUSE = 0.5  # seconds before the second attempt, and twice as many before each further one
LONGEST_PAUSE = 120.0  # the client does not wait longer; the site's own windows last a minute
ANSWERS_IN_TIME = 100.0  # seconds; an upload is read, checked and stored before it is answered
TOO_MANY = 429
UNREACHABLE = "unreachable"
GATEWAY = (502, 503, 504)  # from a proxy; the site itself may have handled the request
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class ClientError(BenchbenchError):
    """A site refused a request, failed, or did not answer.

    `status` is the HTTP status, or 0 without an answer. `code` is stable and meant for programs. It comes from the site
    or from the client (docs/client.md). `message` is for people. `errors` maps fields of the request to sentences.
    `reference` identifies the error in the site's log.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = UNREACHABLE,
        errors: Mapping[str, Sequence[str]] | None = None,
        reference: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.errors = dict(errors or {})
        self.reference = reference

    def __str__(self) -> str:
        return f"{self.message} Reference: {self.reference}" if self.reference else self.message


class Connection:
    """Connection to a site at an address, with a token. Threads may share one.

    A request is retried, up to ATTEMPTS times, if it never arrived or the site throttled it. After a lost answer, it is
    retried only if it is idempotent: it only reads, or carries an Idempotency-Key. Pauses follow the answer's
    Retry-After, if given.
    """

    def __init__(self, address: str, *, token: str = "") -> None:
        self.address = address.rstrip("/").removesuffix(ROOT)
        token = token.strip()  # a token read from a file ends with a line break
        if not (token.isascii() and token.isprintable()):
            raise ClientError("The token has invalid characters: copy it again.", code="invalid_token")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # Redirects are refused: they would send the token to another address.
        timeout = httpx.Timeout(ANSWERS_IN_TIME, connect=10)
        self._http = httpx.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, *, once: bool = False, reads: bool = False, **content: object) -> Any:
        """Return the JSON answer of `path`, which begins after /api/v2; None for an answer without a body.

        `once`: the address honours Idempotency-Key, and the request carries one. `reads`: a POST that changes nothing.
        `content` is httpx's: json, params, data, files. Raises ClientError.
        """
        headers = {"Idempotency-Key": str(uuid4())} if once else {}
        answer = self._send(method, path, repeatable=once or reads or method == "GET", headers=headers, **content)
        if answer.is_success:
            return _parse_json(answer) if answer.content else None
        raise _build_refusal(answer)

    def download(self, path: str, **params: object) -> bytes:
        """Return the file at `path`. Raises ClientError."""
        answer = self._send("GET", path, repeatable=True, params=params)
        if answer.is_success:
            return answer.content
        raise _build_refusal(answer)

    def _send(self, method: str, path: str, *, repeatable: bool, **content: Any) -> httpx.Response:
        url = f"{self.address}{ROOT}{path}"
        attempt = 1
        while True:
            pause = FIRST_PAUSE * 2 ** (attempt - 1)
            try:
                answer = self._http.request(method, url, **content)
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise ClientError(f"{self.address!r} is not the address of a site: {error}") from None
            except httpx.RequestError as error:
                if attempt == ATTEMPTS or not (repeatable or isinstance(error, NOT_SENT)):
                    raise _lost_answer(method, url, error) from error
            else:
                if answer.status_code != TOO_MANY and not (answer.status_code in GATEWAY and repeatable):
                    return answer
                pause = _retry_after(answer, pause)
                if attempt == ATTEMPTS or pause > LONGEST_PAUSE:
                    return answer
            time.sleep(pause)
            attempt += 1


def _retry_after(answer: httpx.Response, otherwise: float) -> float:
    """Return the seconds of Retry-After, which gives seconds or a date."""
    header = answer.headers.get("Retry-After", "")
    if header.isascii() and header.isdecimal():
        return float(header)
    with suppress(ValueError, TypeError):  # TypeError: a date without a time zone
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    return otherwise


def _lost_answer(method: str, url: str, error: httpx.RequestError) -> ClientError:
    reason = str(error) or type(error).__name__
    if isinstance(error, NOT_SENT):
        return ClientError(f"{url} cannot be reached: {reason}. Check the address, and that the site is running.")
    return ClientError(
        f"The answer to {method} {url} was lost ({reason}): the request may have been carried out or not."
    )


def _build_refusal(answer: httpx.Response) -> ClientError:
    body = _parse_json(answer)
    if not isinstance(body, Mapping) or not isinstance(body.get("detail"), str):
        raise _unknown_site(answer)
    message = body["detail"]
    if body.get("code") == "not_authenticated" and "Authorization" not in answer.request.headers:
        message = f"No token was given: give one, or set BENCHBENCH_TOKEN. {message}"
    return ClientError(
        message,
        status=answer.status_code,
        code=body.get("code", ""),
        errors=body.get("errors"),
        reference=body.get("reference", ""),
    )


def _parse_json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise _unknown_site(answer) from None


def _unknown_site(answer: httpx.Response) -> ClientError:
    redirect = f" and leads to {answer.headers['Location']}" if "Location" in answer.headers else ""
    return ClientError(
        f"{answer.url} is not a BenchBench site: it answered {answer.status_code} "
        f"{answer.reason_phrase}{redirect}. Give the address of a site, without /api/v2.",
        status=answer.status_code,
        code="not_benchbench",
    )
