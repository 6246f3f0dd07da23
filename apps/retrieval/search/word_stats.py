"""Counts of what an index of words leaves out: chunks without a term, terms of unusual length, another language."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import ClassVar

import numpy as np
from django.db.models.functions import Left
from numpy.typing import NDArray

from apps.retrieval.models import ChunkSet
from benchbench.reading.objects import StrictRecord, read_as
from benchbench.texts.guessing import CHARACTERS, Guess, guess_language

SAMPLE = 100  # chunks whose language is guessed, from anywhere in the set
SEED = 0
SHORTEST, LONGEST = 3, 20  # characters of a usual term, apart from numbers
LONGEST_UNSPACED = 6  # of one in a script without blanks
NO_GUESS = Guess("", 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordStats(StrictRecord):
    """Counts over the chunks of an index of words. A term counts once for each chunk that has it.

    `first_without` is the position of a chunk without a term, `example` the most frequent term of unusual length.
    `guessed` is the language of `agreeing` of the `sampled` chunks; "" if that is not clear.
    """

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    chunks: int
    without_terms: int = 0
    first_without: int | None = None
    unusual_share: float = 0.0
    example: str = ""
    guessed: str = ""
    agreeing: int = 0
    sampled: int = 0

    @classmethod
    def from_dict(cls, stats: Mapping[str, object]) -> "WordStats | None":
        """Read what `as_dict` returned; None for an index that was built before there were any."""
        return read_as(cls, stats) if stats else None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def guess_chunk_language(chunk_set: ChunkSet) -> Guess:
    """Return the language of SAMPLE chunks, or of all if there are fewer; NO_GUESS if it is not clear."""
    count = chunk_set.chunk_count
    drawn = Random(SEED).sample(range(count), min(SAMPLE, count))
    starts = Left("text", CHARACTERS)
    return guess_language(chunk_set.leaves.filter(position__in=drawn).values_list(starts, flat=True)) or NO_GUESS


def compute_word_stats(
    terms: Sequence[str], frequencies: NDArray[np.int64], lengths: NDArray[np.int64], guess: Guess
) -> WordStats:
    """Return the counts of an index.

    `frequencies` (terms,) are the chunks with each term, and `lengths` (chunks,) the terms of each chunk.
    """
    unusual = np.fromiter(map(_is_unusual, terms), np.bool_, len(terms))
    counts, without = np.where(unusual, frequencies, 0), np.flatnonzero(lengths == 0)
    return WordStats(
        chunks=len(lengths),
        without_terms=len(without),
        first_without=int(without[0]) if len(without) else None,
        unusual_share=round(float(counts.sum() / max(1, frequencies.sum())), 4),
        example=terms[int(counts.argmax())][:40] if unusual.any() else "",
        guessed=guess.language,
        agreeing=guess.agreeing,
        sampled=guess.sampled,
    )


def _is_unusual(term: str) -> bool:
    if term.isnumeric():
        return len(term) > LONGEST
    if not term.isascii():
        from benchbench.texts.scripts import PERHAPS_UNSPACED

        if PERHAPS_UNSPACED.search(term):
            return len(term) > LONGEST_UNSPACED
    return not SHORTEST <= len(term) <= LONGEST
