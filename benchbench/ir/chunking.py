"""Parts of a text: chunks, segments between section bounds, and first sentences."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from itertools import pairwise

from benchbench.errors import BenchbenchError


class ChunkingError(BenchbenchError):
    """A chunk size and an overlap do not fit together."""

    code = "chunking"


def cut_spans(text: str, *, size: int, overlap: int) -> list[tuple[int, int]]:
    """Return the chunks (start, end) of `text` in characters: windows of `size` with an `overlap` with the last.

    Windows may end in mid-word; the overlap keeps the word whole in one of the two. The last window ends with the last
    character that is not white space, so none repeats only an overlap. Windows of white space are left out; a blank
    text therefore has no chunks.
    """
    check_chunk_parameters(size=size, overlap=overlap)
    length = len(text.rstrip())
    windows = [(start, min(start + size, length)) for start in range(0, max(length - overlap, 1), size - overlap)]
    return [(start, end) for start, end in windows if text[start:end].strip()]


def check_chunk_parameters(*, size: int, overlap: int) -> None:
    """Raise ChunkingError unless 0 ≤ overlap < size / 2. With more overlap, most of an index would be repetition."""
    if not 0 <= overlap < size / 2:
        raise ChunkingError(
            f"The chunk overlap {overlap} must be at least 0 and less than half the size of a chunk, which is {size}.",
            field="chunk_overlap",
        )


CHARACTERS = 500  # the default size of a chunk

ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n\s*\n")


def find_first_sentences(text: str, *, limit: int = CHARACTERS) -> str:
    """Return the sentences that a text begins with, as many as fit into `limit` characters, white space collapsed.

    A sentence ends with a full stop, a question or exclamation mark before white space, or with a blank line. If even
    the first one does not fit, it is cut after a word.
    """
    summary = ""
    start = 0
    for end in [*(match.end() for match in ENDS.finditer(text)), len(text)]:
        longer = " ".join([summary, *text[start:end].split()]).strip()
        if len(longer) > limit:
            return summary or longer[: limit + 1].rsplit(maxsplit=1)[0][:limit]
        summary, start = longer, end
    return summary


def list_segments(length: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int, int | None]]:
    """Return the parts (start, end, number) of a text of `length` characters, in order and without gaps.

    `number` is that of the shortest span (start, end) that covers the part, of equally short ones the first; None
    without such a span.
    """
    edges = {edge for start, end in spans if start < end for edge in (start, end)}
    waiting = sorted((number for number, (start, end) in enumerate(spans) if start < end), key=lambda n: -spans[n][0])
    covering: list[tuple[int, int]] = []  # a heap of (length, number)
    pieces: list[tuple[int, int, int | None]] = []
    for start, end in pairwise(sorted({0, length, *edges})):
        while waiting and spans[waiting[-1]][0] <= start:
            number = waiting.pop()
            heapq.heappush(covering, (spans[number][1] - spans[number][0], number))
        while covering and spans[covering[0][1]][1] <= start:
            heapq.heappop(covering)
        inside = covering[0][1] if covering else None
        if pieces and pieces[-1][2] == inside:
            start = pieces.pop()[0]
        pieces.append((start, end, inside))
    return pieces
