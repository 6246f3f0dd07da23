"""Segments: a text parted where its sections begin and end."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise


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
