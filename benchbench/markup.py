"""Texts of users: words of a query highlighted, escaped for Markdown, Markdown as HTML, entities of HTML decoded."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

WORD = re.compile(r"\w+")
MIN_LENGTH = 3
LONGEST_STEM = 100
BEFORE = 60
EXCERPT = 320
# The stop words of the lexical index that are long enough to be marked.
UNMARKED = frozenset(
    {"and", "are", "but", "for", "into", "not", "such", "that", "the", "their", "then", "there", "these", "they"}
    | {"this", "was", "will", "with"}
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text; `hit` marks a word of the query."""

    text: str
    hit: bool


def excerpt(text: str, query: str) -> list[Piece]:
    """Return the part of `text` that starts shortly before its first query word, with the query's words marked.

    Words match by their beginning (four fifths of the query's word, at least three letters), so "indexes" marks
    "indexing"; stop words do not match. The excerpt has at most about EXCERPT characters, with an ellipsis for omitted
    text. It is plain text: the template escapes it.
    """
    flat = " ".join(text.split())
    first, _ = next(_yield_hits(flat, _list_stems(query)), (0, 0))
    start = max(0, first - BEFORE)
    if start:
        start = flat.rfind(" ", 0, start) + 1
    passage = flat[start : start + EXCERPT]
    if start + EXCERPT < len(flat):
        passage = passage[: passage.rfind(" ")] if " " in passage else passage
        passage += " …"
    return mark_words(("… " if start else "") + passage, query)


def mark_words(text: str, query: str) -> list[Piece]:
    """Return the whole of `text` in pieces, the words of `query` marked."""
    stems = _list_stems(query)
    pieces, end = [], 0
    for start, stop in _yield_hits(text, stems):
        pieces += [Piece(text[end:start], False), Piece(text[start:stop], True)]
        end = stop
    return [piece for piece in (*pieces, Piece(text[end:], False)) if piece.text]


def _list_stems(query: str) -> dict[int, set[str]]:
    """Return the beginnings by which words match, in small letters, by length."""
    stems: dict[int, set[str]] = {}
    for word in WORD.findall(query):
        if len(word) >= MIN_LENGTH and word.lower() not in UNMARKED:
            length = min(max(MIN_LENGTH, len(word) * 4 // 5), LONGEST_STEM)
            stems.setdefault(length, set()).add(word[:length].lower())
    return stems


def _yield_hits(text: str, stems: dict[int, set[str]]) -> Iterator[tuple[int, int]]:
    """Yield start and end of the words that begin with a stem.

    A word is looked up once for each length of a stem, so a long query costs no more than a short one.
    """
    for word in WORD.finditer(text) if stems else ():
        lowered = word[0][:LONGEST_STEM].lower()
        if any(lowered[:length] in starts for length, starts in stems.items()):
            yield word.span()


def text(words: str) -> str:
    """Return `words` on one line, with Markdown and HTML markup escaped, for use in a table cell."""
    return re.sub(r"[\\`*<|~]|(?<!\w)[@_]|_(?!\w)|\](?=[(\[:])", r"\\\g<0>", " ".join(words.split()))


def code(words: str) -> str:
    """Return `words` as a code span on one line."""
    return "`" + " ".join(words.replace("`", "'").split()) + "`"


def render_markdown(words: str) -> str:
    """Return Markdown as safe HTML: HTML in it is escaped, and it loads nothing from other sites."""
    return str(_build_renderer().render(words))


@cache
def _build_renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


LONG_REFERENCE = re.compile(r"&#0*([0-9]{8})[0-9]*")  # &#12345678; is already past the last character


def decode_entities(text: str) -> str:
    """Return text with the entities of HTML decoded; numbers of no character become U+FFFD."""
    return html.unescape(shorten_references(text))


def shorten_references(text: str) -> str:
    """Return text whose numeric entities Python can convert: from 4,300 digits on it refuses to. They mean the same."""
    return LONG_REFERENCE.sub(r"&#\1", text)
