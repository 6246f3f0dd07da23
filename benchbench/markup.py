"""Texts of users: with the words of a query highlighted, escaped for Markdown, and Markdown as HTML."""

import re
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt

WORD = re.compile(r"\w+")
MIN_LENGTH = 3
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
    pattern = _build_pattern(query)
    first = pattern.search(flat) if pattern else None
    start = max(0, first.start() - BEFORE) if first else 0
    if start:
        start = flat.rfind(" ", 0, start) + 1
    passage = flat[start : start + EXCERPT]
    if start + EXCERPT < len(flat):
        passage = passage[: passage.rfind(" ")] if " " in passage else passage
        passage += " …"
    return mark_words(("… " if start else "") + passage, query)


def mark_words(text: str, query: str) -> list[Piece]:
    """Return the whole of `text` in pieces, the words of `query` marked."""
    pattern = _build_pattern(query)
    pieces = pattern.split(text) if pattern else [text]  # every second one is a word
    return [Piece(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece]


def _build_pattern(query: str) -> re.Pattern[str] | None:
    words = {word for word in WORD.findall(query) if len(word) >= MIN_LENGTH and word.lower() not in UNMARKED}
    stems = {word[: max(MIN_LENGTH, len(word) * 4 // 5)] for word in words}
    if not stems:
        return None
    longest_first = sorted(stems, key=lambda stem: (-len(stem), stem))
    return re.compile(rf"(\b(?:{'|'.join(map(re.escape, longest_first))})\w*)", re.IGNORECASE)


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
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
