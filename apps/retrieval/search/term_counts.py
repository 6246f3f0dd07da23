"""Building of BM25 indexes larger than memory: terms are counted block by block, then merged term by term."""

import json
import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from tempfile import TemporaryFile
from typing import IO

import numpy as np
from numpy.typing import NDArray

from apps.retrieval.search.lexical import PARAMETERS, build_tokenizer_options
from benchbench.local_files.npz import ArrayBlocks, write_npz

BLOCK_CHARACTERS = 2**24
TEXT_CHARACTERS = 100  # added to the length of each text, because many empty ones take memory too
MERGED_POSTINGS = 2**22
POSTING = np.dtype([("position", np.int32), ("count", np.int32)])


def write_bm25(texts: Iterable[str], out: IO[bytes]) -> None:
    """Write the index of texts, whose positions are 0..n-1, as the archive that `Bm25.from_archive` reads.

    Some 10,000 abstracts a second. Memory is that of a block, and 12 bytes for each distinct term of each block.
    """
    with TemporaryFile() as file:
        counts = count_terms(texts, file)
        terms = np.frombuffer(json.dumps(counts.terms, ensure_ascii=False).encode(), np.uint8)
        size = (int(counts.starts[-1]),)
        write_npz(
            out,
            {
                "impacts": ArrayBlocks(np.float32, size, _compute_impacts(counts)),
                "positions": ArrayBlocks(np.int32, size, (postings["position"] for _, postings in counts.merge())),
                "starts": ArrayBlocks(np.int64, counts.starts.shape, [counts.starts]),
                "terms": ArrayBlocks(np.uint8, terms.shape, [terms]),
                "count": ArrayBlocks(np.int64, (), [np.array(len(counts.lengths))]),
            },
        )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The terms of successive texts. Their postings follow one another in the file, sorted by term and text."""

    terms: NDArray[np.int32]  # (terms,): the number of each, ascending
    starts: NDArray[np.int64]  # (terms + 1,): the posting of the file with which each begins


@dataclass(frozen=True, slots=True, eq=False)
class TermCounts:
    """Occurrences of each term in each text. Terms are numbered in alphabetical order."""

    file: IO[bytes]
    blocks: Sequence[Block]
    terms: Sequence[str]
    starts: NDArray[np.int64]  # (terms + 1,): where the postings of each term begin once the blocks are merged
    lengths: NDArray[np.int64]  # (texts,): the terms of each, repetitions included

    def merge(self) -> Iterator[tuple[slice, NDArray[np.void]]]:
        """Yield ranges of terms and their postings, sorted by term and text: some million at a time."""
        first = 0
        while first < len(self.terms):
            limit = self.starts[first] + MERGED_POSTINGS
            last = max(first + 1, int(np.searchsorted(self.starts, limit, side="right")) - 1)
            yield slice(first, last), self._merge_range(first, last)
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
        return merged


def count_terms(texts: Iterable[str], file: IO[bytes]) -> TermCounts:
    """Count the terms of texts block by block, and write the postings to `file`, which is empty."""
    numbers: dict[str, int] = {}  # in the order in which terms are met
    blocks: list[Block] = []
    lengths = [np.empty(0, np.int64)]
    text_count = 0
    for block in _cut_blocks(texts):
        terms, tokens, rows = _tokenize(block)
        keys, counts = np.unique(tokens * len(block) + rows, return_counts=True)
        start = file.tell() // POSTING.itemsize
        starts = start + np.searchsorted(keys, np.arange(len(terms) + 1) * len(block))
        blocks.append(Block(np.array([numbers.setdefault(term, len(numbers)) for term in terms], np.int32), starts))
        postings = np.empty(len(keys), POSTING)
        postings["position"], postings["count"] = keys % len(block) + text_count, counts
        file.write(postings.tobytes())
        lengths.append(np.bincount(rows, minlength=len(block)))
        text_count += len(block)
    sorted_terms = sorted(numbers)
    ranks = np.empty(len(numbers), np.int32)
    ranks[[numbers[term] for term in sorted_terms]] = np.arange(len(numbers))
    frequencies = np.zeros(1 + len(numbers), np.int64)
    for counted in blocks:
        counted.terms[:] = ranks[counted.terms]
        frequencies[1 + counted.terms] += np.diff(counted.starts)
    return TermCounts(file, blocks, sorted_terms, np.cumsum(frequencies), np.concatenate(lengths))


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


def _tokenize(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct terms in alphabetical order, the place there of each token, and the text of each token.

    The tokens are those of `bm25s.tokenize`, which takes several steps of Python for each. Here only distinct words do.
    """
    options = build_tokenizer_options()
    split = re.compile(options["token_pattern"]).findall
    numbers: defaultdict[str, int] = defaultdict(count().__next__)  # of words, in the order in which they are met
    token_words = array("i")
    ends = []
    for text in texts:
        token_words.extend(map(numbers.__getitem__, split(text.lower())))
        ends.append(len(token_words))
    words = list(numbers.keys() - set(options["stopwords"]))
    stems = options["stemmer"].stemWords(words)
    terms = sorted(set(stems))
    ranks = {term: rank for rank, term in enumerate(terms)}
    places = np.full(len(numbers), -1, np.int64)
    places[[numbers[word] for word in words]] = [ranks[stem] for stem in stems]
    tokens = places[np.asarray(token_words)]
    rows = np.repeat(np.arange(len(texts)), np.diff(ends, prepend=0))
    return terms, tokens[tokens >= 0], rows[tokens >= 0]


def _compute_impacts(counts: TermCounts) -> Iterator[NDArray[np.float32]]:
    """Yield the impacts of all postings by Lucene's formula, with the roundings of bm25s: each has the same bits."""
    n, k1, b = len(counts.lengths), PARAMETERS["k1"], PARAMETERS["b"]
    for terms, postings in counts.merge():
        frequencies = np.diff(counts.starts[terms.start : terms.stop + 1])
        idfs = [math.log(1 + (n - frequency + 0.5) / (frequency + 0.5)) for frequency in frequencies.tolist()]
        norms = k1 * ((1 - b) + b * counts.lengths[postings["position"]] / counts.lengths.mean())
        occurrences = postings["count"].astype(np.float32)
        yield np.repeat(np.array(idfs, np.float32), frequencies) * (occurrences / (norms + occurrences))
