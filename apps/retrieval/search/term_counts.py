"""Building of BM25 indexes larger than memory: terms are counted block by block, then merged term by term."""

from __future__ import annotations

import json
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryFile
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.analysis.analyzers import Analyzer
from benchbench.local_files.npz import ArrayBlocks, write_npz

BLOCK_CHARACTERS = 2**24
TEXT_CHARACTERS = 100  # added to the length of each text, because many empty ones take memory too
MERGED_POSTINGS = 2**22
POSTING = np.dtype([("position", np.int32), ("code", np.uint32)])

Pair = tuple[int, int]  # the occurrences of a term in a text, and the length of the text
Key = TypeVar("Key", str, Pair)


def write_bm25(texts: Iterable[str], out: IO[bytes], analyzer: Analyzer) -> TermCounts:
    """Write the index of texts, whose positions are 0..n-1, as the archive that `Bm25.from_archive` reads.

    Return the counts, whose postings are gone. Some 10,000 abstracts a second. Memory is that of a block, 12 bytes for
    each distinct term of each block, and the distinct pairs of occurrences and length.
    """
    with TemporaryFile() as file:
        counts = count_terms(texts, file, analyzer)
        terms = np.frombuffer(json.dumps(counts.terms, ensure_ascii=False).encode(), np.uint8)
        size = (int(counts.starts[-1]),)
        idfs = _compute_idfs(counts)
        code = np.min_scalar_type(max(1, len(counts.pairs)) - 1).type
        write_npz(
            out,
            {
                "codes": ArrayBlocks(code, size, (postings["code"] for postings in counts.merge())),
                "positions": ArrayBlocks(np.int32, size, (postings["position"] for postings in counts.merge())),
                "pairs": ArrayBlocks(np.int64, counts.pairs.shape, [counts.pairs]),
                "idfs": ArrayBlocks(np.float32, idfs.shape, [idfs]),
                "starts": ArrayBlocks(np.int64, counts.starts.shape, [counts.starts]),
                "terms": ArrayBlocks(np.uint8, terms.shape, [terms]),
                "count": ArrayBlocks(np.int64, (), [np.array(len(counts.lengths))]),
                "length": ArrayBlocks(np.int64, (), [counts.lengths.sum()]),
            },
        )
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The terms of successive texts. Their postings follow one another in the file, sorted by term and text."""

    terms: NDArray[np.int32]  # (terms,): the number of each, ascending
    starts: NDArray[np.int64]  # (terms + 1,): the posting of the file with which each begins


@dataclass(frozen=True, slots=True, eq=False)
class TermCounts:
    """Occurrences of each term in each text. Terms are numbered in alphabetical order.

    The code of a posting is the row of `pairs` with its number of occurrences and the length of its text.
    """

    file: IO[bytes]
    blocks: Sequence[Block]
    terms: Sequence[str]
    starts: NDArray[np.int64]  # (terms + 1,): where the postings of each term begin once the blocks are merged
    lengths: NDArray[np.int64]  # (texts,): the terms of each, repetitions included
    pairs: NDArray[np.int64]  # (codes, 2): occurrences and length of the text, ascending
    ranks: NDArray[np.int32]  # (codes,): the row in `pairs` of each code that the file has

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """Return the number of texts with each term, (terms,)."""
        return np.diff(self.starts)

    def merge(self) -> Iterator[NDArray[np.void]]:
        """Yield the postings, sorted by term and text: those of a range of terms, some million at a time."""
        first = 0
        while first < len(self.terms):
            limit = self.starts[first] + MERGED_POSTINGS
            last = max(first + 1, int(np.searchsorted(self.starts, limit, side="right")) - 1)
            yield self._merge_range(first, last)
            first = last

    def _merge_range(self, first: int, last: int) -> NDArray[np.void]:
        merged = np.empty(self.starts[last] - self.starts[first], POSTING)
        free = self.starts[first:last] - self.starts[first]  # where the next posting of each term belongs
        for block in self.blocks:
            begin, end = np.searchsorted(block.terms, (first, last))
            starts, terms = block.starts[begin : end + 1], block.terms[begin:end] - first
            self.file.seek(POSTING.itemsize * int(starts[0]))
            postings = np.fromfile(self.file, POSTING, int(starts[-1] - starts[0]))
            sizes = np.diff(starts)
            shifts = np.repeat(free[terms] - (starts[:-1] - starts[0]), sizes)
            merged[shifts + np.arange(len(postings))] = postings
            free[terms] += sizes
        merged["code"] = self.ranks[merged["code"]]
        return merged


def count_terms(texts: Iterable[str], file: IO[bytes], analyzer: Analyzer) -> TermCounts:
    """Count the terms of texts block by block, and write the postings to `file`, which is empty."""
    numbers: dict[str, int] = {}  # in the order in which terms are met
    codes: dict[Pair, int] = {}  # likewise
    blocks: list[Block] = []
    lengths = [np.empty(0, np.int64)]
    text_count = 0
    for block in _cut_blocks(texts):
        terms, starts, postings, block_lengths = _count_block(block, codes, analyzer)
        term_numbers = np.array([numbers.setdefault(term, len(numbers)) for term in terms], np.int32)
        blocks.append(Block(term_numbers, starts + file.tell() // POSTING.itemsize))
        postings["position"] += text_count
        file.write(postings.tobytes())
        lengths.append(block_lengths)
        text_count += len(block)
    sorted_terms, ranks = _rank(numbers)
    sorted_pairs, code_ranks = _rank(codes)
    frequencies = np.zeros(1 + len(numbers), np.int64)
    for counted in blocks:
        counted.terms[:] = ranks[counted.terms]
        frequencies[1 + counted.terms] += np.diff(counted.starts)
    return TermCounts(
        file=file,
        blocks=blocks,
        terms=sorted_terms,
        starts=np.cumsum(frequencies),
        lengths=np.concatenate(lengths),
        pairs=np.array(sorted_pairs, np.int64).reshape(-1, 2),
        ranks=code_ranks,
    )


def _count_block(
    texts: Sequence[str], codes: dict[Pair, int], analyzer: Analyzer
) -> tuple[list[str], NDArray[np.int64], NDArray[np.void], NDArray[np.int64]]:
    """Return the terms of texts, where the postings of each begin, these, and the lengths of the texts.

    A pair that `codes` lacks gets the next code.
    """
    terms, tokens, rows = _tokenize(texts, analyzer)
    keys, counts = np.unique(tokens * len(texts) + rows, return_counts=True)
    lengths = np.bincount(rows, minlength=len(texts))
    postings = np.empty(len(keys), POSTING)
    postings["position"] = keys % len(texts)
    # A table of all combinations: to sort the pairs would make building a seventh slower.
    distinct_counts, distinct_lengths = np.flatnonzero(np.bincount(counts)), np.unique(lengths)
    count_rows = np.searchsorted(distinct_counts, counts)
    cells = count_rows * len(distinct_lengths) + np.searchsorted(distinct_lengths, lengths)[postings["position"]]
    filled = np.flatnonzero(np.bincount(cells))
    rows, columns = np.divmod(filled, len(distinct_lengths))
    pairs = zip(distinct_counts[rows].tolist(), distinct_lengths[columns].tolist(), strict=True)
    table = np.empty(len(distinct_counts) * len(distinct_lengths), np.uint32)
    table[filled] = [codes.setdefault(pair, len(codes)) for pair in pairs]
    postings["code"] = table[cells]
    return terms, np.searchsorted(keys, np.arange(len(terms) + 1) * len(texts)), postings, lengths


def _rank(numbers: dict[Key, int]) -> tuple[list[Key], NDArray[np.int32]]:
    """Return the keys in order, and the place there of each number."""
    keys = sorted(numbers)
    ranks = np.empty(len(keys), np.int32)
    ranks[[numbers[key] for key in keys]] = np.arange(len(keys))
    return keys, ranks


def _cut_blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text) + TEXT_CHARACTERS
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _tokenize(texts: Sequence[str], analyzer: Analyzer) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct terms in alphabetical order, the place there of each token, and the text of each token.

    The terms are those of `analyzer.analyze`, which finishes each word. Here only distinct words are finished.
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__)  # of words, in the order in which they are met
    token_words = array("i")
    ends = []
    for text in texts:
        token_words.extend(map(numbers.__getitem__, analyzer.split(text)))
        ends.append(len(token_words))
    finished = analyzer.finish(list(numbers))
    terms = sorted(set(finished) - {""})
    ranks = {term: rank for rank, term in enumerate(terms)} | {"": -1}
    places = np.fromiter((ranks[term] for term in finished), np.int64, len(finished))
    tokens = places[np.asarray(token_words)]
    rows = np.repeat(np.arange(len(texts)), np.diff(ends, prepend=0))
    return terms, tokens[tokens >= 0], rows[tokens >= 0]


def _compute_idfs(counts: TermCounts) -> NDArray[np.float32]:
    n, frequencies = len(counts.lengths), counts.frequencies.tolist()
    return np.array([math.log(1 + (n - frequency + 0.5) / (frequency + 0.5)) for frequency in frequencies], np.float32)
