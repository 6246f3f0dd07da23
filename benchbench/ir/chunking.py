"""Parts of a text: chunks, the segments between the bounds of its sections, and its first sentences."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from itertools import pairwise

from benchbench.errors import BenchbenchError


class ChunkingError(BenchbenchError):
    """A chunk size and overlap that cannot go together."""

    code = "chunking"


def spans(text: str, *, size: int, overlap: int) -> list[tuple[int, int]]:
    """The (start, end) of each chunk of `text` in characters: windows of `size`, each repeating `overlap` of the last.

    Windows are plain: they end in mid-word where the count says so, and the overlap keeps the word whole in one of the
    two. The last one ends with the last character that is not white space, so none only repeats an overlap. A window of
    nothing but white space is left out; a blank text therefore has no chunks.
    """
    check_chunk_parameters(size=size, overlap=overlap)
    length = len(text.rstrip())
    windows = [(start, min(start + size, length)) for start in range(0, max(length - overlap, 1), size - overlap)]
    return [(start, end) for start, end in windows if text[start:end].strip()]


def check_chunk_parameters(*, size: int, overlap: int) -> None:
    """Raises ChunkingError unless 0 ≤ overlap < size / 2, beyond which most of an index would be repetition."""
    if not 0 <= overlap < size / 2:
        raise ChunkingError(
            f"A chunk overlap of {overlap} does not go with a chunk size of {size}; it must be at least 0 and less "
            "than half the size.",
            field="chunk_overlap",
        )


CHARACTERS = 500  # as many as a chunk has by default

ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*\n")


def first_sentences(text: str, *, most: int = CHARACTERS) -> str:
    """The sentences that a text begins with, as many as fit into `most` characters, white space collapsed.

    A sentence ends with a full stop, a question or exclamation mark before white space, or with a blank line. Where not
    even the first one fits it is cut after a word.
    """
    summary = ""
    start = 0
    for end in [*(match.end() for match in ENDS.finditer(text)), len(text)]:
        longer = " ".join([summary, *text[start:end].split()]).strip()
        if len(longer) > most:
            return summary or longer[: most + 1].rsplit(maxsplit=1)[0][:most]
        summary, start = longer, end
    return summary


def segments(length: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int, int | None]]:
    """The parts (start, end, number) of a text of `length` characters, in order and without gaps.

    `number` is that of the span (start, end) that covers the part: the shortest, of equally short ones the first; None
    where none does.
    """
    edges = {edge for start, end in spans if start < end for edge in (start, end)}
    waiting = sorted((number for number, (start, end) in enumerate(spans) if start < end), key=lambda n: -spans[n][0])
    covering: list[tuple[int, int]] = []  # a heap of (length, number)
    parts: list[tuple[int, int, int | None]] = []
    for start, end in pairwise(sorted({0, length, *edges})):
        while waiting and spans[waiting[-1]][0] <= start:
            number = waiting.pop()
            heapq.heappush(covering, (spans[number][1] - spans[number][0], number))
        while covering and spans[covering[0][1]][1] <= start:
            heapq.heappop(covering)
        inside = covering[0][1] if covering else None
        if parts and parts[-1][2] == inside:
            start = parts.pop()[0]
        parts.append((start, end, inside))
    return parts
