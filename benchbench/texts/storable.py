"""Texts from outside: encodings other than UTF-8, named for people, and texts made fit to be stored (`clean_text`)."""

import codecs
import re

UNSTORABLE = re.compile("[\0\ud800-\udfff]")
REPLACEMENT = "\ufffd"
CUT = "…"
SAVE = "Save the file as UTF-8 (spreadsheets call it CSV UTF-8)"
MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}  # that of UTF-32 first: it begins like one of UTF-16
HEAD, MOST_ZEROS = 200, 0.75  # bytes that are looked at; the share of zeros in half of them


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


def find_wide_encoding(head: bytes) -> str:
    """Return the name of an encoding with several bytes a character, by a file's first bytes; "" for any other.

    It has a byte order mark, or, as texts in Latin letters, zeros in most of every other byte.
    """
    if name := next((name for mark, name in MARKS.items() if head.startswith(mark)), ""):
        return name
    halves = [head[:HEAD][start::2] for start in (0, 1)]
    shares = sorted(half.count(0) / max(len(half), 1) for half in halves)
    return "UTF-16" if len(head) > 3 and shares[0] < 0.1 and shares[1] > MOST_ZEROS else ""


def describe_undecodable(error: UnicodeDecodeError) -> str:
    """Return why bytes are not UTF-8, with the encoding that they suggest and the remedy, without a full stop."""
    if wide := find_wide_encoding(error.object):
        return f"is not UTF-8 but {wide}. {SAVE}"
    byte = f"byte {error.start} is 0x{error.object[error.start]:02X}"
    try:
        error.object.decode("cp1252")
    except UnicodeDecodeError:
        return f"is not UTF-8: {byte}. {SAVE}"
    return f"is not UTF-8: {byte}, as in Windows-1252 or another old encoding. {SAVE}"
