"""Secrets, which no message contains. They are looked for in the texts of other servers, however these spell them."""

import base64
import re
import string
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from urllib.parse import unquote

from benchbench.markup import decode_entities
from benchbench.texts.words import normalize

SHORTEST = 8  # letters and digits that are looked for in answers; fewer may be part of any text
SHORTEST_IN_ERRORS = 5
ROUNDS = 8  # of decoding: a text may have been encoded several times
HIDDEN = "…"
# `\U0000003d` `\u003d` `%u003d` `U+003D` `\u{3d}` `\x{3d}` `\x3d` `\00003d` and, in octal, `\075` `\0075`
CODES = re.compile(
    r"(?-i:\\U)([0-9a-f]{8})|(?:\\u|%u|\bU\+)([0-9a-f]{4})|\\[ux]\{([0-9a-f]{1,6})\}|\\x([0-9a-f]{2})"
    r"|\\0000([0-9a-f]{2})|\\0?([0-3]?[0-7]{2})",
    re.IGNORECASE,
)
OCTAL = CODES.groups
NUMBERS = ("{}", "{:o}", "{:x}", "0x{:x}", "0x{:02x}", "{:08b}")  # of bytes, in lists
QUOTED_PRINTABLE = re.compile(r"=(?:\r?\n|([0-9a-f]{2}))", re.IGNORECASE)
TAG = re.compile(r"<!\[CDATA\[|<(?:/?[a-zA-Z]|!)[^<>]*>")
NO_WORD = bytes(code for code in range(128) if chr(code) not in string.ascii_letters + string.digits)
SCHEME = re.compile(r"(?:basic|bearer|token|key|apikey|api-key)\s+(\S.*)", re.IGNORECASE)


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
    def _values(self) -> list[str]:
        """Texts to hide: the secret, also without the scheme of a header, and the password of a Basic header."""
        values = [self._value] if self._value else []
        if match := SCHEME.fullmatch(self._value):
            values.append(match[1])
        with suppress(ValueError):
            decoded = base64.b64decode(values[-1] if values else "", validate=True).decode()
            if decoded.isprintable() and ":" in decoded:
                values += [decoded, decoded.partition(":")[2]]
        return list(filter(None, values))

    @cached_property
    def _forms(self) -> list[bytes]:
        """The letters and digits of the secret, and of its encodings as hexadecimal, base64, base32 and codes."""
        return sorted({_squash(text) for value in self._values for text in _encode(value)})

    def hide(self, text: str, longest: int) -> str:
        """Return the first characters of a text; nothing of a text that contains the secret."""
        if any(value in text for value in self._values) or self._is_in(text, SHORTEST_IN_ERRORS):
            return "(a message that repeats the secret)"
        return text if len(text) <= longest else f"{text[: longest - 1]}…"

    def is_in(self, text: str | bytes | bytearray) -> bool:
        """Return whether an answer contains the secret, in a form that is too long to be part of any text."""
        if isinstance(text, bytes | bytearray):
            text = text.decode("utf-8", "replace")
        is_found = any(len(value) >= SHORTEST and value in text for value in self._values)
        return is_found or self._is_in(text, SHORTEST)

    def _is_in(self, text: str, shortest: int) -> bool:
        forms = [form for form in self._forms if len(form) >= shortest]
        return bool(forms) and any(form in view for view in _list_views(text) for form in forms)


def _encode(value: str) -> Iterator[str]:
    data = value.encode()
    yield value
    yield from ("".join(map(number.format, data)) for number in NUMBERS)
    for written in (data, value.encode("utf-16-le"), value.encode("utf-16-be"), base64.b64encode(data)):
        yield written.hex()
        yield from _encode_within(written)


def _encode_within(data: bytes) -> Iterator[str]:
    """Yield data in base64 and base32 within a longer text: that of one of several numbers of bytes before it.

    The characters that it shares with what surrounds it are cut.
    """
    for encode, bits, group in ((base64.b64encode, 6, 3), (base64.b32encode, 5, 5)):
        for before in range(group):
            first, last = -(-before * 8 // bits), (before + len(data)) * 8 // bits
            yield encode(bytes(before) + data).decode()[first:last]


def _list_views(text: str) -> Iterator[bytes]:
    """Yield the letters and digits of a text, as it is and decoded, each once."""
    seen = set()
    for view in _decode(text):
        for each in (view, TAG.sub("", view) if "<" in view else view):
            if each not in seen:
                seen.add(each)
                yield _squash(each)


def _decode(text: str) -> Iterator[str]:
    yield text
    for _ in range(ROUNDS):
        decoded = unquote(decode_entities(CODES.sub(_read_code, text) if _has_codes(text) else text))
        if decoded == text:
            break
        yield (text := decoded)
    yield unquote(QUOTED_PRINTABLE.sub(lambda match: f"%{match[1]}" if match[1] else "", text)) if "=" in text else text


def _has_codes(text: str) -> bool:
    return any(beginning in text for beginning in ("\\", "%u", "%U", "U+", "u+"))


def _read_code(match: re.Match[str]) -> str:
    group = match.lastindex or 0
    code = int(match[group], 8 if group == OCTAL else 16)
    return chr(code) if code < 0x110000 else ""


def _squash(text: str) -> bytes:
    """Return the letters and digits of a text in small letters: neither case nor what separates them matters."""
    if not text.isascii():
        text = normalize(text, "NFKD")
    return text.encode("ascii", "ignore").lower().translate(None, NO_WORD)
