"""Secrets of declarations: their values come from environment variables, and appear in no text."""

import base64
import binascii
import json
from functools import cached_property
from urllib.parse import quote, quote_plus

SHORTEST = 8  # characters of a secret that is searched for in answers; a shorter one may be part of any text
HIDDEN = "…"


class Secret:
    """The value of a secret. `reveal` returns it for the headers of a request; nothing else shows it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def reveal(self) -> str:
        return self._value

    @cached_property
    def _forms(self) -> list[str]:
        """The ways in which a server may repeat the secret: as it is, encoded, and the password of a Basic header."""
        if not self._value:
            return []
        value = self._value
        forms = {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]}
        forms.add(base64.b64encode(value.encode()).decode())
        try:
            decoded = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            return sorted(forms)
        if decoded.isprintable() and ":" in decoded:
            forms |= {decoded, decoded.partition(":")[2] or decoded}
        return sorted(forms)

    def hide(self, text: str, longest: int) -> str:
        """Return the first characters of a text; nothing of a text that contains the secret."""
        if any(form in text for form in self._forms):
            return "(a message that repeats the secret)"
        return text if len(text) <= longest else f"{text[: longest - 1]}…"

    def is_in(self, body: bytes) -> bool:
        """Return whether an answer contains the secret; false for secrets that are too short for that."""
        return len(self._value) >= SHORTEST and any(form.encode() in body for form in self._forms)
