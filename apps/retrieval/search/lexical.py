"""Lexical search: BM25 in Lucene's variant, over the words of chunks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchbench.ir.ranking import top
from benchbench.ir.records import ScoredList, Scores
from benchbench.local_files.npz import view_npz

PARAMETERS: dict[str, Any] = {
    "method": "lucene",
    "k1": 1.5,
    "b": 0.75,
    "stopwords": "en",
    "stemmer": "english",
    "impacts": "float32",
}


@dataclass(frozen=True, slots=True, eq=False)
class Bm25:
    """An inverted index. The impact of a posting, what its term adds to the score of its chunk, is idf × saturation.

    A saturation depends only on the occurrences of the term and the length of the chunk. Few are distinct, so a posting
    holds the number of its saturation. Impacts are float32 and their sum is float64, in the order of the query's
    words. So a score has the same bits in every batch and on every machine that loads this index.
    """

    codes: NDArray[np.unsignedinteger]  # (postings,): term by term, the row of each posting in `saturations`
    positions: NDArray[np.int32]  # (postings,): the chunk of each posting, at most once per term
    saturations: NDArray[np.float64]  # (codes,): in (0, 1)
    idfs: NDArray[np.float32]  # (terms,)
    starts: NDArray[np.int64]  # (terms + 1,): where each term's postings begin
    terms: dict[str, int]
    count: int  # number of indexed chunks

    def search(self, texts: Sequence[str], depth: int, *, mask: NDArray[np.bool_] | None = None) -> list[ScoredList]:
        """Return the best `depth` chunks that share a word with each text, by descending score, then position.

        A repeated word of a query counts each time. `mask` (n,) admits chunks before they are ranked.
        """
        import bm25s

        queries = bm25s.tokenize(list(texts), return_ids=False, **build_tokenizer_options())
        return [self._find_best(self._compute_scores(words), depth, mask) for words in queries]

    def explain(self, text: str, positions: Sequence[int]) -> list[list[tuple[str, float]]]:
        """Return for each chunk of `positions` the stems that it shares with a text, each with its part of the score.

        The parts are in the order in which a search adds them, so their sum has the bits of the score.
        """
        import bm25s

        (words,) = bm25s.tokenize([text], return_ids=False, **build_tokenizer_options())
        terms: dict[int, list[tuple[str, float]]] = {position: [] for position in positions}
        for word in (word for word in words if word in self.terms):
            chunks, impacts = self.read_postings(self.terms[word])
            for row in np.flatnonzero(np.isin(chunks, positions)):
                terms[int(chunks[row])].append((word, float(impacts[row])))
        return [terms[position] for position in positions]

    def _compute_scores(self, words: Sequence[str]) -> Scores:
        scores = np.zeros(self.count)
        for term in (self.terms[word] for word in words if word in self.terms):
            positions, impacts = self.read_postings(term)
            scores[positions] += impacts
        return scores

    def read_postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the chunks with a term, ascending, and its impact on each, with the bits that bm25s computes."""
        postings = slice(self.starts[term], self.starts[term + 1])
        impacts = self.saturations.take(self.codes[postings]) * self.idfs[term]
        return self.positions[postings], impacts.astype(np.float32)

    def _find_best(self, scores: Scores, depth: int, mask: NDArray[np.bool_] | None) -> ScoredList:
        matches = np.flatnonzero(scores > 0 if mask is None else (scores > 0) & mask)
        return top(scores[matches], depth, ids=matches)

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory, estimating the strings of terms."""
        arrays = self.codes, self.positions, self.saturations, self.idfs, self.starts
        return sum(array.nbytes for array in arrays) + 100 * len(self.terms)

    @classmethod
    def from_archive(cls, archive: NDArray[np.uint8]) -> Self:
        """Return the index in an .npz archive of its attributes, with the terms as JSON. Only these are copied."""
        arrays = view_npz(archive)
        terms = {term: number for number, term in enumerate(json.loads(arrays["terms"].tobytes()))}
        attributes = {name: arrays[name] for name in ("codes", "positions", "saturations", "idfs", "starts")}
        attributes["saturations"] = attributes["saturations"].copy()  # in the archive they are not aligned
        return cls(**attributes, terms=terms, count=int(arrays["count"]))


def build_tokenizer_options() -> dict[str, Any]:
    """Return the tokenizer options: lower case, words of two or more characters, no stop words, stems."""
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    return {
        "token_pattern": r"(?u)\b\w\w+\b",
        "stopwords": STOPWORDS_EN,
        "stemmer": Stemmer.Stemmer(PARAMETERS["stemmer"], 0),  # its cache takes longer than stemming
        "show_progress": False,
    }
