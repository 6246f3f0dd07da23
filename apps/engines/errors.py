"""Errors of requests to search engines and to addresses of notices, and secrets, which no message contains."""

import base64
import html
import json
from contextlib import suppress
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

from benchbench.errors import BenchbenchError

SHORTEST = 8  # characters of a secret that is searched for in answers; a shorter one may be part of any text
HIDDEN = "…"


class EngineError(BenchbenchError):
    """A search engine is not declared, or does not give a complete answer."""

    code = "engine"


class TemporaryEngineError(EngineError):
    """The engine fails for now: another request may succeed, after `retry_after` seconds if the engine says so."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EngineTimeoutError(TemporaryEngineError):
    """A request took longer than its total time. It is not repeated at once, because it may be a slow query."""


class EngineDownError(EngineError):
    """The engine did not answer for as long as its declaration waits: no further question can be asked."""

    code = "engine_down"


class UnsentError(EngineError):
    """An open loop that cannot keep up with its rate ended before this request."""

    def __init__(self) -> None:
        super().__init__("The query was not sent, because searches did not keep up with the rate: choose a lower rate.")


class AnswerError(EngineError):
    """An answer cannot be mapped, or is only part of one. `path` failed on `looked_at`."""

    def __init__(self, message: str, *, path: str = "", looked_at: Any = None) -> None:
        super().__init__(message)
        self.path = path
        self.looked_at = looked_at


class Secret:
    """The value of a secret. `reveal` returns it for the headers of a request; nothing else shows it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __bool__(self) -> bool:
        return bool(self._value)

    def reveal(self) -> str:
        return self._value

    @cached_property
    def _forms(self) -> list[str]:
        """The ways in which a server may repeat the secret: as it is, encoded, and the password of a Basic header."""
        values = {self._value}
        with suppress(ValueError):
            decoded = base64.b64decode(self._value, validate=True).decode()
            if decoded.isprintable() and ":" in decoded:
                values |= {decoded, decoded.partition(":")[2]}
        forms = set()
        for value in values:
            escaped = json.dumps(value)[1:-1]
            forms |= {value, quote(value, safe=""), quote_plus(value), html.escape(value)}
            forms |= {escaped, escaped.replace("/", "\\/"), base64.b64encode(value.encode()).decode()}
        return sorted(forms - {""})

    def hide(self, text: str, longest: int) -> str:
        """Return the first characters of a text; nothing of a text that contains the secret."""
        if any(form in text for form in self._forms):
            return "(a message that repeats the secret)"
        return text if len(text) <= longest else f"{text[: longest - 1]}…"

    def is_in(self, body: bytes | bytearray) -> bool:
        """Return whether an answer contains the secret, in a form that is too long to be part of any text."""
        return any(form.encode() in body for form in self._forms if len(form) >= SHORTEST)
