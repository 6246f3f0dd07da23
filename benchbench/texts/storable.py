"""Texts from outside, made fit to be stored: `clean_text` is for every one that is not refused."""

import re

UNSTORABLE = re.compile("[\0\ud800-\udfff]")
REPLACEMENT = "\ufffd"
CUT = "…"


def is_storable(text: str) -> bool:
    """Return whether PostgreSQL can store a text: it has no NUL character and no half of a surrogate pair."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_text(text: str, longest: int) -> str:
    """Return a text that others wrote as PostgreSQL can store it, with at most `longest` characters.

    U+FFFD replaces what cannot be stored, and a text that was cut ends with …. A text that identifies
    something, such as the id of a document, is refused instead.
    """
    cut = text if len(text) <= longest else text[: longest - 1] + CUT
    return cut if is_storable(cut) else UNSTORABLE.sub(REPLACEMENT, cut)
