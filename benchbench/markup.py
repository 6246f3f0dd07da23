"""Texts of users: words of a query highlighted, escaped for Markdown and LaTeX, Markdown as HTML, entities decoded."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchbench.texts.words import Word, find_words

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

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
    "indexing"; stop words do not match. In scripts without blanks, two adjacent letters match. The excerpt has at most
    about EXCERPT characters, with an ellipsis for omitted text. It is plain text: the template escapes it.
    """
    flat = " ".join(text.split())
    first, _ = next(_yield_hits(flat, _Markers.from_query(query)), (0, 0))
    start = max(0, first - BEFORE)
    if start:
        start = flat.rfind(" ", max(0, start - BEFORE), start) + 1 or start
    passage = flat[start : start + EXCERPT]
    if start + EXCERPT < len(flat):
        passage = passage[: passage.rfind(" ")] if " " in passage else passage
        passage += " …"
    return mark_words(("… " if start else "") + passage, query)


def mark_words(text: str, query: str) -> list[Piece]:
    """Return the whole of `text` in pieces, the words of `query` marked."""
    pieces, end = [], 0
    for start, stop in _yield_hits(text, _Markers.from_query(query)):
        pieces += [Piece(text[end:start], False), Piece(text[start:stop], True)]
        end = stop
    return [piece for piece in (*pieces, Piece(text[end:], False)) if piece.text]


@dataclass(frozen=True, slots=True)
class _Markers:
    """The marked words of a query, folded.

    `stems` are the beginnings of the query's words, by length. In scripts without blanks, `pairs` are its adjacent
    letters, and `letters` those without a neighbour.
    """

    stems: dict[int, set[str]]
    pairs: set[tuple[str, str]]
    letters: set[str]

    @classmethod
    def from_query(cls, query: str) -> _Markers:
        words = list(find_words(query))
        adjacent = [(first, second) for first, second in pairwise(words) if _are_adjacent(first, second)]
        paired = {word.start for pair in adjacent for word in pair}
        stems: dict[int, set[str]] = {}
        for word in words:
            if not word.is_letter and len(word.text) >= MIN_LENGTH and word.text not in UNMARKED:
                length = min(max(MIN_LENGTH, len(word.text) * 4 // 5), LONGEST_STEM)
                stems.setdefault(length, set()).add(word.text[:length])
        return cls(
            stems,
            {(first.text, second.text) for first, second in adjacent},
            {word.text for word in words if word.is_letter and word.start not in paired},
        )


def _are_adjacent(first: Word, second: Word) -> bool:
    return first.is_letter and second.is_letter and first.end == second.start


def _yield_hits(text: str, markers: _Markers) -> Iterator[tuple[int, int]]:
    """Yield start and end of the marked words, adjacent ones as one.

    A word is looked up once for each length of a stem, so a long query costs no more than a short one.
    """
    last, start, end = None, 0, 0
    for word in find_words(text) if markers.stems or markers.pairs or markers.letters else ():
        first = _find_start(word, last, markers)
        if first is not None and end and first <= end:
            end = word.end
        elif first is not None:
            if end:
                yield start, end
            start, end = first, word.end
        last = word
    if end:
        yield start, end


def _find_start(word: Word, last: Word | None, markers: _Markers) -> int | None:
    """Return where what marks `word` begins, in it or in the letter before it; None if nothing does."""
    if word.is_letter:
        if last is not None and (last.text, word.text) in markers.pairs and _are_adjacent(last, word):
            return last.start
        return word.start if word.text in markers.letters else None
    beginning = word.text[:LONGEST_STEM]
    matches = any(beginning[:length] in starts for length, starts in markers.stems.items())
    return word.start if matches else None


def text(words: str) -> str:
    """Return `words` on one line, with Markdown and HTML markup escaped, for use in a table cell."""
    return re.sub(r"[\\`*<|~]|(?<!\w)[@_]|_(?!\w)|\](?=[(\[:])", r"\\\g<0>", " ".join(words.split()))


def code(words: str) -> str:
    """Return `words` as a code span on one line."""
    return "`" + " ".join(words.replace("`", "'").split()) + "`"


LATEX = str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "≥": r"$\geq$", "·": r"$\cdot$", "α": r"$\alpha$"}
    | {"–": "--", "−": "$-$"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
)


def latex(words: str) -> str:
    """Return `words` as one line of LaTeX, with special characters escaped."""
    return " ".join(words.split()).translate(LATEX)


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


# The first versions of Python whose parser of HTML takes time linear in unclosed comments and tags (CVE-2025-6069).
MENDED_HTML = {(3, 11): 14, (3, 12): 12, (3, 13): 6}


def html_is_slow(version: tuple[Any, ...] = sys.version_info) -> bool:
    """Return whether this Python's parser of HTML takes time quadratic in hostile text."""
    return version[2] < MENDED_HTML.get((version[0], version[1]), 0)
