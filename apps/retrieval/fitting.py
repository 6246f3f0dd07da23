"""Chunks that an encoder reads to their end: a longer one is divided into some of equal length."""

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from apps.retrieval.encoders.base import Encoder
from apps.retrieval.strategies.base import Piece
from benchbench.site.reading import cut_batches

AT_ONCE = 2**20  # characters that are tokenised at once
WHITE_SPACE = " \n\t"
Numbered = tuple[int, Piece]  # a piece, and the number of its document


def fit_pieces(documents: Sequence[tuple[str, Sequence[Piece]]], encoder: Encoder) -> list[list[Piece]]:
    """Return the pieces of each document, given with its text, so that the encoder reads each to its end.

    A piece that is longer than the encoder's window is divided into equal lengths, at white space if there is some
    near; what precedes its span of the document, such as a title, precedes each part. It stays whole if that takes more
    than half of the window. An encoder that reads all, or does not state its window, leaves every piece as it is.
    """
    fitted: list[Numbered] = []
    waiting = [(number, piece) for number, (_, pieces) in enumerate(documents) for piece in pieces]
    while waiting:
        divided: list[Numbered] = []
        for some in cut_batches(waiting, max_weight=AT_ONCE, weigh=lambda one: len(one[1].text)):
            cut = encoder.count_cut([piece.text for _, piece in some])
            for row, (number, piece) in enumerate(some):
                end = cut.ends.get(row) if cut else None
                shorter = [piece] if end is None else divide(piece, documents[number][0], end)
                (divided if len(shorter) > 1 else fitted).extend((number, piece) for piece in shorter)
        waiting = divided
    fitted.sort(key=lambda one: (one[0], one[1].start, one[1].end))
    by_document = {number: [piece for _, piece in group] for number, group in groupby(fitted, key=itemgetter(0))}
    return [by_document.get(number, []) for number in range(len(documents))]


def divide(piece: Piece, text: str, end: int) -> list[Piece]:
    """Return the parts of a piece of a document's `text`, of which an encoder reads `end` characters; 0 if unknown."""
    span = text[piece.start : piece.end]
    start = piece.start + len(span) - len(span.lstrip())
    span = span.strip()
    prefix = piece.text.removesuffix(span)
    read = end - len(prefix) if end else len(span) // 2
    if read <= len(prefix) or len(span) < 2:
        return [piece]
    count = max(2, math.ceil(len(span) / read))
    bounds = [0, *(_find_break(span, len(span) * n // count, len(span) // count) for n in range(1, count)), len(span)]
    return [
        Piece(f"{prefix}{span[first:last].strip()}", start + first, start + last, section=piece.section)
        for first, last in pairwise(bounds)
        if span[first:last].strip()
    ]


def _find_break(span: str, at: int, length: int) -> int:
    """Return the place after the last white space in the last quarter of a part that ends `at`; `at` without one."""
    return max(span.rfind(space, at - length // 4, at) + 1 for space in WHITE_SPACE) or at
