"""Chunking: the places where a text is cut."""

from __future__ import annotations

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
